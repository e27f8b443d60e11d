/**
 * Keeps the `data-live` parts of a page up to date: when the service reports a change, the page is loaded
 * again and these parts are updated. Hidden tabs wait until they are visible.
 */
import { morph } from './morph.js';
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
