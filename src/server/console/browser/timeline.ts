/**
 * Moves and zooms time lines by drag, wheel and keys. The server draws every time window: this script
 * requests another one, like the links above the time line.
 */

/** In pixels: a shorter drag is a click. */
const SHORTEST_DRAG = 4;
/** Delay after the last wheel event, in milliseconds. */
const PAUSE = 150;
const ZOOM_PER_PIXEL = 0.002;
const KEYS: Readonly<Record<string, string>> = {
  ArrowLeft: 'earlier',
  ArrowRight: 'later',
  '+': 'narrower',
  '=': 'narrower',
  '-': 'wider',
  '0': 'now',
};

interface Window {
  /** Milliseconds of the epoch. */
  readonly from: number;
  readonly until: number;
}

let loading: AbortController | undefined;

export function moveTimelines(): void {
  prepare(document);
  document.addEventListener('keydown', (event) => {
    const timeline = timelineOf(event.target);
    const move = KEYS[event.key];
    const hasModifier = event.ctrlKey || event.altKey || event.metaKey;
    if (timeline === undefined || event.target !== timeline || move === undefined || hasModifier) {
      return;
    }
    const link = timeline.querySelector<HTMLAnchorElement>(`[data-move="${move}"]`);
    if (link !== null) {
      event.preventDefault();
      void load(new URL(link.href));
    }
  });
  document.addEventListener('pointerdown', drag);
  document.addEventListener('wheel', turn, { passive: false });
}

/** Makes time lines focusable for keys. */
function prepare(within: ParentNode): void {
  for (const timeline of within.querySelectorAll<HTMLElement>('.timeline')) {
    timeline.tabIndex = 0;
    timeline.setAttribute('role', 'group');
    timeline.setAttribute('aria-label', 'Time line: the arrow keys move it, + and - zoom');
    timeline.classList.add('movable');
    timeline.dataset.kept = 'tabindex role aria-label class data-kept';
  }
}

function drag(down: PointerEvent): void {
  const track = down.target instanceof Element ? down.target.closest<SVGElement>('.track') : null;
  const timeline = timelineOf(down.target);
  if (track === null || timeline === undefined || down.button !== 0 || down.pointerType === 'touch') {
    return;
  }
  const { width } = track.getBoundingClientRect();
  const moved = new AbortController();
  const shift = (event: PointerEvent) => event.clientX - down.clientX;
  const show = (pixels: number) => {
    for (const one of timeline.querySelectorAll<SVGElement>('.track > *')) {
      one.style.transform = pixels === 0 ? '' : `translateX(${pixels}px)`;
    }
  };
  document.addEventListener('pointermove', (event) => show(shift(event)), { signal: moved.signal });
  for (const name of ['pointerup', 'pointercancel'] as const) {
    document.addEventListener(
      name,
      (event) => {
        moved.abort();
        const pixels = shift(event);
        if (name === 'pointercancel' || Math.abs(pixels) < SHORTEST_DRAG || width === 0) {
          show(0);
          return;
        }
        const { from, until } = windowOf(timeline);
        const by = (-pixels / width) * (until - from);
        void load(addressOf({ from: from + by, until: until + by }));
      },
      { signal: moved.signal },
    );
  }
  down.preventDefault();
  timeline.focus({ preventScroll: true });
}

let turned: Window | undefined;
let pause: ReturnType<typeof setTimeout> | undefined;

/** Zooms with Ctrl (also a pinch on a touchpad); moves sideways or with Shift; otherwise the page scrolls. */
function turn(event: WheelEvent): void {
  const timeline = timelineOf(event.target);
  const track = event.target instanceof Element ? event.target.closest('.track') : null;
  const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (timeline === undefined || track === null || (!event.ctrlKey && !isSideways)) {
    return;
  }
  event.preventDefault();
  const { from, until } = turned ?? windowOf(timeline);
  const { width, left } = track.getBoundingClientRect();
  const length = until - from;
  if (event.ctrlKey) {
    const factor = Math.exp(event.deltaY * ZOOM_PER_PIXEL);
    const at = from + ((event.clientX - left) / width) * length;
    turned = { from: at - (at - from) * factor, until: at + (until - at) * factor };
  } else {
    const by = ((event.deltaX || event.deltaY) / width) * length;
    turned = { from: from + by, until: until + by };
  }
  clearTimeout(pause);
  pause = setTimeout(() => {
    const wanted = turned;
    turned = undefined;
    if (wanted !== undefined) {
      void load(addressOf(wanted));
    }
  }, PAUSE);
}

function timelineOf(target: EventTarget | null): HTMLElement | undefined {
  return (target instanceof Element ? target.closest<HTMLElement>('.timeline') : null) ?? undefined;
}

function windowOf({ dataset }: HTMLElement): Window {
  return { from: Date.parse(dataset.from ?? ''), until: Date.parse(dataset.until ?? '') };
}

/** The URL of this page with another window, at the first page of its list. */
function addressOf({ from, until }: Window): URL {
  const address = new URL(location.href);
  for (const name of ['after', 'before', 'page']) {
    address.searchParams.delete(name);
  }
  address.searchParams.set('from', text(from));
  address.searchParams.set('until', text(until));
  return address;
}

/** To the second, from 1970 on, in four digits for the year. */
function text(milliseconds: number): string {
  const within = Math.min(253_000_000_000_000, Math.max(0, milliseconds));
  return `${new Date(within).toISOString().slice(0, 19)}Z`;
}

/** Replaces only the part of the page with the time line. If that fails, opens the page. */
async function load(address: URL): Promise<void> {
  loading?.abort();
  loading = new AbortController();
  const { signal } = loading;
  const here = document.querySelector('.timeline')?.closest('[data-live]');
  try {
    const answer = await fetch(address, { signal, headers: { Accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const there = page.querySelector('.timeline')?.closest('[data-live]');
    if (!answer.ok || answer.redirected || !here || !there) {
      location.assign(address);
      return;
    }
    const hadFocus = document.activeElement?.closest('.timeline') !== null;
    here.replaceChildren(...there.childNodes);
    prepare(here);
    history.replaceState(history.state, '', address);
    const timeline = here.querySelector<HTMLElement>('.timeline');
    if (hadFocus) {
      timeline?.focus({ preventScroll: true });
    }
    const status = document.querySelector('[data-live-status]');
    if (status !== null && timeline !== null) {
      status.textContent = `Leases from ${timeline.dataset.from} until ${timeline.dataset.until}`;
    }
  } catch {
    if (!signal.aborted) {
      location.assign(address);
    }
  }
}
