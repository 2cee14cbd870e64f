(function () {
  "use strict";
  var root = document.documentElement, button = document.getElementById("theme"), key = "prevalens-theme";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function kept() { try { return localStorage.getItem(key); } catch (error) { return null; } }
  function keep(theme) { try { localStorage.setItem(key, theme); } catch (error) { return; } }
  function current() { return root.dataset.theme || (dark.matches ? "dark" : "light"); }
  function name() {
    var other = current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", "Switch to " + other + " colours");
  }
  if (kept()) { root.dataset.theme = kept(); }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    keep(root.dataset.theme);
    name();
  });
  dark.addEventListener("change", name);
  name();
}());
