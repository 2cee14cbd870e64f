// From an answer's rows to what the charts draw.

export function viewOf(answer) {
  const { labels, groups: batches, training } = answer;
  const column = new Map(labels.map((label, index) => [label, index]));
  const line = new Map(batches.map((batch, index) => [batch.name, index]));
  const empty = () => batches.map(() => labels.map(() => null));
  const view = { labels, batches, point: empty(), lower: empty(), upper: empty(), moved: empty(), training: labels.map((label) => training[label]) };
  for (const row of answer.rows) {
    const [b, l] = [line.get(row.group), column.get(row.label)];
    view.point[b][l] = row.prevalence;
    view.lower[b][l] = row.lower ?? null;
    view.upper[b][l] = row.upper ?? null;
    view.moved[b][l] = row.moved;
  }
  view.level = answer.level;
  view.ordered = answer.ordered && batches.length > 1;
  return view;
}

// Labels of one batch, the most frequent first.
export function ranked(view, batch) {
  return view.labels
    .map((label, index) => ({
      label, index,
      point: view.point[batch][index], lower: view.lower[batch][index], upper: view.upper[batch][index],
      training: view.training[index],
    }))
    .sort((a, b) => b.point - a.point || a.label.localeCompare(b.label));
}

// Labels of one batch by how far they are from training.
export function movers(view, batch) {
  return ranked(view, batch)
    .map((row) => ({ ...row, change: row.point - row.training, clear: view.moved[batch][row.index] !== 0 }))
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

// Labels by how much they move from batch to batch.
export function restless(view) {
  const reach = (index) => {
    const values = view.point.map((line) => line[index]);
    return Math.max(...values) - Math.min(...values);
  };
  return view.labels.map((label, index) => ({ label, index, reach: reach(index) })).sort((a, b) => b.reach - a.reach);
}
