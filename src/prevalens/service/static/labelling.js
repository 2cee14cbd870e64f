// A few labels: items to download, to label by hand, and to hand in again.

import { download, upload } from "./client.js";
import { calm, complain, make, show } from "./dom.js";
import { plural, width } from "./format.js";
import { droppable } from "./preview.js";
import { sending } from "./progress.js";

const DRAWN = 50;

// `body` is the request of the estimate without labels, `before` its answer; `estimate` repeats it.
export function labelling(model, body, answer, before, estimate) {
  const drawn = make("input", { type: "number", id: "drawn", min: 1, max: 10000, value: DRAWN });
  const save = make("button", { type: "button" }, "Download items to label");
  save.addEventListener("click", () => {
    calm();
    download(`/v1/models/${encodeURIComponent(model)}/sample?n=${drawn.value}`, "to_label.csv", body).catch(complain);
  });
  const input = make("input", { type: "file", id: "labelled", multiple: true, accept: ".csv,.tsv,.jsonl,.json,.parquet,.xlsx" });
  const place = make("div", { className: "progress", hidden: true });
  const drop = make("label", { className: "drop", id: "labelled-drop" }, input,
    make("span", {}, make("strong", {}, "Upload them labelled"), " or drop the file here"),
    make("small", {}, "0 or 1 under every label; rows without labels are left out"));
  droppable(drop, input, (files) => hand(files, place, body, estimate));
  return make("section", { className: "inset", id: "labelling", "aria-labelledby": "labelling-title" },
    make("h3", { id: "labelling-title" }, "A few labels narrow the intervals"),
    make("p", {}, gained(answer, before)),
    make("div", { className: "actions" }, make("label", {}, answer.n_groups > 1 ? "Items per batch " : "Items ", drawn), save), drop, place);
}

function gained(answer, before) {
  if (!answer.n_labelled) return "The items are drawn at random, so their labels are right on average however wrong the model may be. Label them in a spreadsheet and hand them in: the intervals shrink.";
  const next = answer.more_labels ? ` About ${plural(answer.more_labels, "more label")}${answer.n_groups > 1 ? " per batch" : ""} would halve them.` : "";
  const without = before ? `, ${width(before)} without them` : "";
  return `With ${plural(answer.n_labelled, "labelled item")} the intervals are ${width(answer)} wide on average${without}.${next}`;
}

async function hand(files, place, body, estimate) {
  calm();
  try {
    const uploads = await upload(files, sending(place, "Sending labels"));
    await estimate({ ...body, interval: body.interval ?? 0.9, labelled: uploads.map((file) => file.id) });
  } catch (error) {
    complain(error);
  } finally {
    show(place, false);
  }
}
