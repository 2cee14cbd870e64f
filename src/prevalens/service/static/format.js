// Numbers for people.

export function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

export function points(change) {
  const value = (100 * change).toFixed(1);
  return `${change > 0 ? "+" : ""}${value === "-0.0" ? "0.0" : value.replace("-", "−")} points`;
}

// Mean width of the intervals of an answer.
export function width(answer) {
  return `${(100 * answer.width).toFixed(1)} points`;
}

export function count(number) {
  return number.toLocaleString("en-GB");
}

export function plural(number, word) {
  const many = /(s|x|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
  return `${count(number)} ${number === 1 ? word : many}`;
}

export function bytes(number) {
  if (number < 1000) return `${number} B`;
  if (number < 1e6) return `${(number / 1e3).toFixed(0)} kB`;
  return `${(number / 1e6).toFixed(1)} MB`;
}

export function cell(value) {
  if (value === null || value === undefined) return "";
  const text = String(value);
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
}
