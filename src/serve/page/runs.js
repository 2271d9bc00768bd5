// A run as it goes on. Without it, the page has the numbers of when it was asked for.
"use strict";
const live = document.getElementById("live");
const source = new EventSource(location.pathname + location.search);
// What somebody reads or holds is left alone until they are done with it.
const isHeld = () => live.contains(document.activeElement) || !getSelection().isCollapsed;
const show = data => {
  const page = new DOMParser().parseFromString(data, "text/html");
  live.replaceChildren(...page.body.childNodes);
};
source.addEventListener("run", event => isHeld() || show(event.data));
source.addEventListener("last", event => {
  source.close();
  show(event.data);
});
