// The page: steps in order, and what they tell each other.

import { get, takeToken, useToken } from "./client.js";
import { openAddress, restoreData, setUpData, useFiles, useModel } from "./data.js";
import { calm, complain, find, show } from "./dom.js";
import { loadModels, setUpModels } from "./models.js";
import { watchWidth } from "./result.js";
import { open, restoreTraining, setUpTraining } from "./training.js";

const THEME = "prevalens-theme";

function setUpTheme() {
  const select = find("theme");
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
  };
  select.value = localStorage.getItem(THEME) ?? "auto";
  apply(select.value);
  select.addEventListener("change", () => {
    localStorage.setItem(THEME, select.value);
    apply(select.value);
  });
}

// What this tab had before it was loaded again comes back: choices, running jobs, the result.
async function begin() {
  calm();
  const { version } = await get("/healthz");
  find("version").textContent = `prevalens ${version}`;
  await loadModels();
  show(find("token-card"), false);
  await Promise.all([restoreData(), restoreTraining()]);
}

// The page is busy as long as what it loads may still move its parts; a job that it then follows
// may take minutes, and is announced.
async function start() {
  find("main").setAttribute("aria-busy", "true");
  try {
    await begin();
  } finally {
    find("main").removeAttribute("aria-busy");
  }
  await openAddress();
}

function setUpToken() {
  find("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(find("token").value.trim());
    start().catch(complain);
  });
}

async function demo(result) {
  await loadModels(result.model);
  useFiles(result.uploads);
  open(false);
  find("estimate").focus({ preventScroll: true });
  find("data-title").scrollIntoView({ block: "start" });
}

// The focus does not vanish with the button that had it.
function putAway() {
  const inside = find("alert").contains(document.activeElement);
  calm();
  if (inside) find("main").focus({ preventScroll: true });
}

takeToken();
setUpTheme();
setUpToken();
setUpModels(useModel);
setUpData();
setUpTraining({ onModel: loadModels, onDemo: demo });
watchWidth();
find("alert-close").addEventListener("click", putAway);
addEventListener("keydown", (event) => event.key === "Escape" && putAway());
start().catch(complain);
