// A bar for something that takes time, with a way to stop it.

import { finished, remove } from "./client.js";
import { make, show } from "./dom.js";

export async function follow(place, job, title) {
  const bar = make("progress", { max: 1, "aria-label": title });
  const text = make("p", { role: "status" }, title);
  const stop = make("button", { type: "button" }, "Cancel");
  stop.addEventListener("click", () => {
    stop.disabled = true;
    remove(`/v1/jobs/${job.id}`).catch(() => {});
  });
  place.replaceChildren(text, bar, stop);
  show(place, true);
  try {
    return await finished(job, (now) => {
      const said = `${title}: ${now.stage || now.state} (${Math.floor(now.seconds)} s)`;
      if (text.textContent !== said) text.textContent = said;
      if (now.share === null) bar.removeAttribute("value");
      else bar.value = now.share;
    });
  } finally {
    show(place, false);
  }
}

export function sending(place, title) {
  const bar = make("progress", { max: 1, "aria-label": title });
  place.replaceChildren(make("p", { role: "status" }, title), bar);
  show(place, true);
  return (share) => {
    if (share === null || share >= 1) bar.removeAttribute("value");
    else bar.value = share;
  };
}
