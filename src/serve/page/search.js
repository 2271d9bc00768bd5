// A slider over the times of an archive. Without it, the same times are links, and what the field of a time suggests.
"use strict";
const slider = document.getElementById("slider"), field = document.getElementById("as-of");
const times = document.getElementById("times").options, shown = document.querySelector("output[for=slider]");
const show = () => {
  // Past the last time is what is newest.
  const time = times[slider.value];
  shown.textContent = time ? `${time.dataset.name} (${time.label})` : slider.dataset.newest;
  slider.setAttribute("aria-valuetext", shown.textContent);
  return time?.value ?? "";
};
slider.addEventListener("input", () => (field.value = show()));
show();
