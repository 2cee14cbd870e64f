// The HTTP interface, as the page uses it.

import { find, show } from "./dom.js";

const KEY = "prevalens-token";
// Milliseconds between two requests for the state of a job: at first short, because most jobs are.
const [FIRST, LAST] = [25, 250];

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// The token comes in the fragment of the address, which browsers do not send to servers.
export function takeToken() {
  const found = /[#&]token=([^&]+)/.exec(location.hash);
  if (!found) return;
  useToken(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname);
}

export function useToken(token) {
  sessionStorage.setItem(KEY, token);
}

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

function refusal(status, text) {
  let error = { code: "internal", message: `The server answered with status ${status}.` };
  try {
    error = JSON.parse(text).error;
  } catch {
    // Not the server's own form: a proxy, perhaps.
  }
  if (error.code === "unauthorised") show(find("token-card"), true);
  return new Refusal(error.code, error.message);
}

async function fetched(path, settings) {
  let answer;
  try {
    answer = await fetch(path, settings);
  } catch {
    throw new Refusal("unreachable", "The server does not answer; is it still running?");
  }
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  return answer;
}

export async function get(path) {
  return (await fetched(path, { headers: headers() })).json();
}

const posted = (body) => ({ method: "POST", headers: headers({ "content-type": "application/json" }), body: JSON.stringify(body) });

export async function post(path, body) {
  return (await fetched(path, posted(body))).json();
}

export async function remove(path) {
  await fetched(path, { method: "DELETE", headers: headers() });
}

// XMLHttpRequest, because fetch does not tell how much of a body has been sent.
export function upload(files, onShare, reading = {}) {
  const form = new FormData();
  const how = new URLSearchParams(Object.entries(reading).filter(([, value]) => value));
  for (const file of files) form.append("file", file, file.name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/uploads?${how}`);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onShare(event.lengthComputable ? event.loaded / event.total : null);
    request.onerror = () => reject(new Refusal("unreachable", "The upload was cut off: the server refused it or is gone."));
    request.onload = () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText).uploads);
      else reject(refusal(request.status, request.responseText));
    };
    request.send(form);
  });
}

export async function finished(job, onNews) {
  let now = job;
  let pause = FIRST;
  while (now.state === "waiting" || now.state === "running") {
    onNews(now);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(LAST, pause * 1.5);
    now = await get(`/v1/jobs/${job.id}`);
  }
  if (now.state !== "done") throw new Refusal(now.error.code, now.error.message);
  return now;
}

// A file by GET, or by POST if it depends on a body.
export async function download(path, name, body = null) {
  const blob = await (await fetched(path, body === null ? { headers: headers() } : posted(body))).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
