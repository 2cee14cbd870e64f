// A bar for something that takes time, with a way to stop it.

import { finished, remove } from "./client.js";
import { make, show } from "./dom.js";

// The stage is announced when it changes; numbers and seconds are for the eyes.
export async function follow(place, job, title) {
  const bar = make("progress", { max: 1, "aria-label": title });
  const live = make("span", { className: "hidden-text", role: "status" });
  const text = make("p", {}, title);
  const stop = make("button", { type: "button" }, "Cancel");
  const before = document.activeElement;
  stop.addEventListener("click", () => {
    stop.setAttribute("aria-disabled", "true");
    remove(`/v1/jobs/${job.id}`).catch(() => {});
  });
  place.replaceChildren(live, text, bar, stop);
  show(place, true);
  try {
    return await finished(job, (now) => {
      const stage = `${title}: ${now.stage || now.state}`;
      const said = stage.replace(/ [\d,]+ items?$/, "");
      if (live.textContent !== said) live.textContent = said;
      text.textContent = `${stage} (${Math.floor(now.seconds)} s)`;
      if (now.share === null) bar.removeAttribute("value");
      else bar.value = now.share;
    });
  } finally {
    const inside = place.contains(document.activeElement);
    show(place, false);
    if (inside) before?.focus();
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
