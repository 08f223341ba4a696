// What scrolls can be reached by the keyboard, and menus of blocks of code have names.
function reachable() {
  for (const part of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, p:has(> img)")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav").forEach((menu, number) => {
    menu.setAttribute("aria-label", `Code ${number + 1}`);
  });
}

addEventListener("load", () => setTimeout(reachable, 200));
addEventListener("resize", reachable);
