/**
 * Changes an element into another one and keeps every node that is in both, so that focus, scroll, selection
 * and open details stay. Items with a `data-key`, such as rows, keep their nodes when others are inserted
 * before them.
 */
export function morph(from: Element, to: Element): void {
  changeAttributes(from, to);
  // Drawn by a script, which updates it itself.
  if (!from.hasAttribute('data-chart')) {
    changeChildren(from, to);
  }
}

/** Keeps the open/closed state that the user chose. */
const KEPT = ['open'];

/** `data-kept` names attributes that a script has set. */
function changeAttributes(from: Element, to: Element): void {
  const own = from.getAttribute('data-kept')?.split(' ') ?? [];
  const kept = new Set([...KEPT, ...own]);
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !kept.has(name)) {
      from.removeAttribute(name);
    }
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !kept.has(name)) {
      from.setAttribute(name, value);
    }
  }
}

function changeChildren(from: Element, to: Element): void {
  const byKey = new Map<string, Element>();
  for (const child of from.children) {
    const key = keyOf(child);
    if (key !== undefined) {
      byKey.set(key, child);
    }
  }
  let at: ChildNode | null = from.firstChild;
  for (const next of [...to.childNodes]) {
    const key = keyOf(next);
    const same: ChildNode | undefined =
      key !== undefined ? byKey.get(key) : at !== null && isAlike(at, next) ? at : undefined;
    if (same === undefined) {
      from.insertBefore(document.importNode(next, true), at);
    } else {
      if (same === at) {
        at = at.nextSibling;
      } else {
        from.insertBefore(same, at);
      }
      change(same, next);
    }
  }
  while (at !== null) {
    const last: ChildNode = at;
    at = at.nextSibling;
    last.remove();
  }
}

function change(from: ChildNode, to: ChildNode): void {
  if (from instanceof Element && to instanceof Element) {
    morph(from, to);
  } else if (from.nodeValue !== to.nodeValue) {
    from.nodeValue = to.nodeValue;
  }
}

/** For nodes without a key; the others are matched by key. */
function isAlike(from: ChildNode, to: ChildNode): boolean {
  return from.nodeName === to.nodeName && keyOf(from) === undefined && idOf(from) === idOf(to);
}

function keyOf(node: ChildNode): string | undefined {
  return node instanceof HTMLElement ? node.dataset.key : undefined;
}

function idOf(node: ChildNode): string {
  return node instanceof Element ? node.id : '';
}
