/**
 * Keeps the parts of a page that are marked `data-live` up to date: when the service says that something has changed, the page is loaded
 * again and these parts are changed. Hidden tabs wait until they are seen.
 */
import { morph } from './morph.js';
import { showLocalTimes } from './times.js';

/** In milliseconds: after several changes in a row the page is loaded once. */
const TOGETHER = 400;
/** What no event tells of, such as a time that has come, is seen after this time, in milliseconds. */
const AT_LATEST = 60_000;
/** After the service has refused to tell, in milliseconds. */
const LATER = 30_000;
/** After the page could not be loaded, in milliseconds. */
const SOON = 5_000;
/** Screen readers are told no more often, in milliseconds. */
const QUIET = 20_000;
const PAUSED = 'live-updates-paused';

export function keepUpToDate(): void {
  const live = new Live();
  live.start();
}

class Live {
  readonly #switch = document.querySelector<HTMLButtonElement>('[data-live-switch]');
  /** Seen as long as the page cannot be loaded. */
  readonly #notice = document.querySelector<HTMLElement>('[data-live-late]');
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
    // A page that comes back by the "back" button is as old as it was.
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
    this.#say(this.#isPaused ? 'Live updates are paused.' : 'Live updates are on.', true);
    this.#follow(true);
  }

  #show(): void {
    this.#switch?.setAttribute('aria-pressed', String(!this.#isPaused && !this.#isOver));
  }

  /** Listens, or stops listening. `isBehind`: something may have happened since the page was loaded. */
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
      // The connection was lost for a while.
      if (!isFirst) {
        this.#changed();
      }
      isFirst = false;
    });
    events.addEventListener('change', () => this.#changed());
    events.addEventListener('error', () => {
      // Otherwise the browser tries again by itself.
      if (events.readyState === EventSource.CLOSED && this.#events === events) {
        this.#events = undefined;
        this.#tryAgain(LATER);
        // Perhaps it can be loaded, and perhaps not.
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
      // The service is away; the next change or minute tries again.
      .catch(() => this.#late(true))
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
    this.#late(!answer.ok && answer.status !== 401);
    if (answer.status === 401) {
      this.#isOver = true;
      this.#stop();
      this.#show();
      this.#say('Your session has ended: load the page again to log in.', true);
      return;
    }
    if (!answer.ok || answer.redirected) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    if (location.href !== href) {
      // A time line has moved meanwhile: it must not be moved back.
      this.#isDue = true;
      return;
    }
    let isOther = false;
    for (const part of document.querySelectorAll<HTMLElement>('[data-live]')) {
      const fresh = page.querySelector(`[data-live="${CSS.escape(part.dataset.live ?? '')}"]`);
      // Somebody who marks a text to copy it must not lose it.
      if (fresh !== null && !isMarked(part) && update(part, fresh)) {
        isOther = true;
      }
    }
    if (isOther) {
      await drawAgain();
      this.#say(`This page was updated at ${new Date().toLocaleTimeString()}.`, false);
    }
  }

  #late(isLate: boolean): void {
    if (this.#notice !== null) {
      this.#notice.hidden = !isLate;
    }
    if (isLate) {
      this.#tryAgain(SOON);
    }
  }

  #tryAgain(milliseconds: number): void {
    clearTimeout(this.#again);
    this.#again = window.setTimeout(() => this.#follow(true), milliseconds);
  }

  #say(text: string, isUrgent: boolean): void {
    const now = Date.now();
    if (this.#status !== null && (isUrgent || now - this.#saidAt >= QUIET)) {
      this.#saidAt = now;
      this.#status.textContent = text;
    }
  }
}

/** Whether it has changed. */
function update(part: HTMLElement, fresh: Element): boolean {
  const before = part.textContent;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  morph(part, fresh);
  showLocalTimes();
  if (focused !== null && !focused.isConnected) {
    // What had the focus is gone: the keyboard goes on from here, not from the top of the page.
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

/** For this tab. */
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
    // The browser keeps nothing; the next page begins with updates.
  }
}
