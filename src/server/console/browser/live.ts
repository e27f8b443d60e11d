/**
 * Keeps the `data-live` parts of a page up to date: when the service reports a change, the page is loaded
 * again and these parts are updated. Hidden tabs wait until they are visible.
 */
import { showLocalTimes } from './times.js';

/** In milliseconds: changes within this time cause one load. */
const TOGETHER = 400;
/** Maximum time between loads, in milliseconds: some changes have no event, such as a time being reached. */
const AT_LATEST = 60_000;
/** Delay after the service has refused events, in milliseconds. */
const LATER = 30_000;
/** Delay after a failed load, in milliseconds. */
const SOON = 5_000;
/** Minimum time between announcements for screen readers, in milliseconds. */
const QUIET = 20_000;
const PAUSED = 'live-updates-paused';
/** Statuses after which the page is not loaded again, and why. */
const ENDINGS: ReadonlyMap<number, string> = new Map([
  [401, 'Your session has ended: load the page again to log in.'],
  [403, 'You can no longer see this page: you have switched the project, or your roles have changed.'],
]);

export class LiveParts {
  readonly #switch = document.querySelector<HTMLButtonElement>('[data-live-switch]');
  /** Visible while the page cannot be loaded. */
  readonly #notice = document.querySelector<HTMLElement>('[data-live-late]');
  readonly #lateText = this.#notice?.textContent ?? '';
  readonly #status = document.querySelector<HTMLElement>('[data-live-status]');
  #isPaused = remembered();
  #events: EventSource | undefined;
  #soon: number | undefined;
  #again: number | undefined;
  #isLoading = false;
  #isDue = false;
  #isOver = false;
  #saidAt = 0;

  start(): void {
    if (this.#switch !== null) {
      this.#switch.hidden = false;
      this.#switch.addEventListener('click', () => this.#toggle());
    }
    this.#show();
    document.addEventListener('visibilitychange', () => this.#follow(true));
    // The "back" button may restore an outdated page.
    addEventListener('pageshow', ({ persisted }) => persisted && this.#follow(true));
    addEventListener('pagehide', () => this.#stop());
    setInterval(() => this.#isFollowing && this.#load(), AT_LATEST);
    this.#follow(false);
  }

  get #isFollowing(): boolean {
    return !this.#isPaused && !this.#isOver && !document.hidden;
  }

  #toggle(): void {
    this.#isPaused = !this.#isPaused;
    remember(this.#isPaused);
    this.#show();
    this.#follow(true);
  }

  #show(): void {
    this.#switch?.setAttribute('aria-pressed', String(!this.#isPaused && !this.#isOver));
  }

  /** Connects or disconnects. `isBehind`: something may have changed since the page was loaded. */
  #follow(isBehind: boolean): void {
    if (!this.#isFollowing) {
      this.#stop();
      return;
    }
    if (this.#events === undefined) {
      this.#listen();
    }
    if (isBehind) {
      this.#load();
    }
  }

  #stop(): void {
    clearTimeout(this.#again);
    this.#events?.close();
    this.#events = undefined;
  }

  #listen(): void {
    const events = new EventSource('/events');
    this.#events = events;
    let isFirst = true;
    events.addEventListener('hello', () => {
      // Reconnected: events may have been missed.
      if (!isFirst) {
        this.#changed();
      }
      isFirst = false;
    });
    events.addEventListener('change', () => this.#changed());
    events.addEventListener('error', () => {
      // In other states, the browser reconnects by itself.
      if (events.readyState === EventSource.CLOSED && this.#events === events) {
        this.#events = undefined;
        this.#tryAgain(LATER);
        // The page may still load although events do not.
        this.#load();
      }
    });
  }

  #changed(): void {
    clearTimeout(this.#soon);
    this.#soon = window.setTimeout(() => this.#isFollowing && this.#load(), TOGETHER);
  }

  #load(): void {
    if (this.#isLoading) {
      this.#isDue = true;
      return;
    }
    this.#isLoading = true;
    void this.#loadNow()
      // The service is unavailable; the next change or minute tries again.
      .catch(() => this.#late(true, undefined))
      .finally(() => {
        this.#isLoading = false;
        if (this.#isDue) {
          this.#isDue = false;
          this.#changed();
        }
      });
  }

  async #loadNow(): Promise<void> {
    const { href } = location;
    const answer = await fetch(href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    const ending = ENDINGS.get(answer.status);
    this.#isOver = ending !== undefined;
    this.#late(!answer.ok, ending);
    if (this.#isOver) {
      this.#stop();
      this.#show();
    }
    if (!answer.ok || answer.redirected) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (location.href !== href) {
      // A time line was moved during the load: it must not be moved back.
      this.#isDue = true;
      return;
    }
    let isOther = false;
    for (const part of document.querySelectorAll<HTMLElement>('[data-live]')) {
      const fresh = page.querySelector(`[data-live="${CSS.escape(part.dataset.live ?? '')}"]`);
      // Text that the user has selected, to copy it, must not change.
      if (fresh !== null && !isMarked(part) && update(part, fresh)) {
        isOther = true;
      }
    }
    if (isOther) {
      await drawAgain();
      this.#say(`This page was updated at ${new Date().toLocaleTimeString()}.`);
    }
  }

  /** `ending`: `undefined` = it is tried again. */
  #late(isLate: boolean, ending: string | undefined): void {
    if (this.#notice !== null) {
      this.#notice.hidden = !isLate;
      this.#notice.textContent = ending ?? this.#lateText;
    }
    if (isLate && ending === undefined) {
      this.#tryAgain(SOON);
    }
  }

  #tryAgain(milliseconds: number): void {
    clearTimeout(this.#again);
    this.#again = window.setTimeout(() => this.#follow(true), milliseconds);
  }

  #say(text: string): void {
    const now = Date.now();
    if (this.#status !== null && now - this.#saidAt >= QUIET) {
      this.#saidAt = now;
      this.#status.textContent = text;
    }
  }
}

/** Returns whether the text has changed. */
function update(part: HTMLElement, fresh: Element): boolean {
  const before = part.textContent;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  morph(part, fresh);
  showLocalTimes();
  if (focused !== null && !focused.isConnected) {
    // The focused element is gone: keep the keyboard position here, not at the top of the page.
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  }
  return part.textContent !== before;
}

async function drawAgain(): Promise<void> {
  if (document.querySelector('[data-chart]') !== null) {
    const { drawCharts } = await import('./chart.js');
    drawCharts(document);
  }
}

function isMarked(part: HTMLElement): boolean {
  const marked = getSelection();
  return marked !== null && !marked.isCollapsed && marked.containsNode(part, true);
}

/** Remembered for this tab. */
function remembered(): boolean {
  try {
    return sessionStorage.getItem(PAUSED) === 'yes';
  } catch {
    return false;
  }
}

function remember(isPaused: boolean): void {
  try {
    sessionStorage.setItem(PAUSED, isPaused ? 'yes' : 'no');
  } catch {
    // The browser stores nothing; the next page starts with updates on.
  }
}

/**
 * Changes an element into another one and keeps every node that is in both, so that focus, scroll, selection
 * and open details stay. Items with a `data-key`, such as rows, keep their nodes when others are inserted
 * before them.
 */
function morph(from: Element, to: Element): void {
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
