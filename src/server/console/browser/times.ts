/**
 * Shows times in the viewer's zone beside UTC, and accepts both in forms. Without this script, all times are
 * UTC. Times that a clock change makes ambiguous are rejected, not guessed.
 */
const DAY = 86_400_000;
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const SHORT_ZONE = new Intl.DateTimeFormat('en', { timeZoneName: 'short' });

/** Adds nothing where both are the same. Call it again when times have changed. */
export function showLocalTimes(): void {
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = Date.parse(time.dateTime);
    if (!Number.isNaN(at) && offsetAt(at) !== 0) {
      time.dataset.local = localText(at);
    }
  }
}

/** Lets users enter the times of a form in UTC or in their zone. They are sent in UTC. */
export function takeLocalTimes(): void {
  const offsets = [0, 0.25, 0.5, 0.75].map((part) => offsetAt(Date.now() + part * 365 * DAY));
  if (offsets.some((offset) => offset !== 0)) {
    for (const [index, form] of [...document.forms].entries()) {
      const inputs = [...form.querySelectorAll<HTMLInputElement>('input[type=datetime-local]')];
      const [first] = inputs;
      if (first?.parentElement) {
        new FormTimes(form, inputs).start(first.parentElement, `times-in-${index}`);
      }
    }
  }
}

class FormTimes {
  readonly #form: HTMLFormElement;
  readonly #fields: readonly TimeField[];
  readonly #select = document.createElement('select');

  constructor(form: HTMLFormElement, inputs: readonly HTMLInputElement[]) {
    this.#form = form;
    this.#fields = inputs.map((input) => new TimeField(input));
  }

  /** `id`: of the select element, which is inserted before the first field. */
  start(first: Element, id: string): void {
    const label = Object.assign(document.createElement('label'), {
      htmlFor: id,
      textContent: 'Times are in',
    });
    this.#select.id = id;
    this.#select.append(new Option('UTC', 'utc'), new Option(ZONE, 'local'));
    const change = () => {
      for (const field of this.#fields) {
        field.change(this.#isLocal);
      }
    };
    this.#select.addEventListener('change', change);
    // "Back" would restore the choice, but not the texts that depend on it.
    this.#select.autocomplete = 'off';
    addEventListener('pagehide', () => {
      this.#select.value = 'utc';
      change();
    });
    addEventListener('pageshow', change);
    const choice = document.createElement('div');
    choice.append(label, this.#select);
    first.before(choice);
    for (const field of this.#fields) {
      field.start();
    }
    this.#form.addEventListener('formdata', ({ formData }) => {
      for (const field of this.#fields) {
        if (this.#isLocal && field.utc !== undefined) {
          formData.set(field.name, field.utc);
        }
      }
    });
  }

  get #isLocal(): boolean {
    return this.#select.value === 'local';
  }
}

class TimeField {
  readonly #input: HTMLInputElement;
  readonly #other = Object.assign(document.createElement('small'), { className: 'hint' });
  /** The texts of label and hint, which name the zone. */
  readonly #texts: readonly (readonly [element: Element, text: string])[];
  #isLocal = false;

  constructor(input: HTMLInputElement) {
    this.#input = input;
    const near = [...(input.labels ?? []), ...(input.parentElement?.querySelectorAll('.hint') ?? [])];
    this.#texts = near.map((element) => [element, element.textContent]);
  }

  start(): void {
    this.#input.after(this.#other);
    this.#input.addEventListener('input', () => this.#show());
    this.#show();
  }

  get name(): string {
    return this.#input.name;
  }

  /** `undefined` = empty. */
  get utc(): string | undefined {
    const [at] = this.#instants();
    return at === undefined ? undefined : wallText(at, this.#input.value.length);
  }

  change(isLocal: boolean): void {
    const [at] = this.#instants();
    this.#isLocal = isLocal;
    if (at !== undefined) {
      this.#input.value = wallText(at + (isLocal ? offsetAt(at) : 0), this.#input.value.length);
    }
    for (const [element, text] of this.#texts) {
      element.textContent = isLocal ? text.replaceAll('UTC', ZONE) : text;
    }
    this.#show();
  }

  /** The possible times: one, unless clocks change then. */
  #instants(): number[] {
    const wall = Date.parse(`${this.#input.value}Z`);
    if (Number.isNaN(wall)) {
      return [];
    }
    return this.#isLocal ? localInstants(wall) : [wall];
  }

  #show(): void {
    const [at, ...others] = this.#instants();
    const isEmpty = this.#input.value === '';
    this.#input.setCustomValidity(
      isEmpty || (at !== undefined && others.length === 0)
        ? ''
        : at === undefined
          ? `Clocks of ${ZONE} skip this time: write another one, or choose UTC.`
          : `Clocks of ${ZONE} show this time twice: write another one, or choose UTC.`,
    );
    this.#other.textContent =
      at === undefined
        ? ''
        : this.#isLocal
          ? `= ${wallText(at, 16).replace('T', ' ')} UTC`
          : `= ${localText(at)}`;
    this.#other.hidden = at === undefined || others.length > 0;
  }
}

/** All times at which local clocks show this. */
function localInstants(wall: number): number[] {
  const offsets = new Set([offsetAt(wall - DAY), offsetAt(wall + DAY)]);
  return [...offsets].map((offset) => wall - offset).filter((at) => at + offsetAt(at) === wall);
}

/** The offset of local time, in milliseconds. */
function offsetAt(at: number): number {
  return -60_000 * new Date(at).getTimezoneOffset();
}

/** `2026-12-01 10:00 GMT+1` */
function localText(at: number): string {
  const zone = SHORT_ZONE.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ZONE;
  return `${wallText(at + offsetAt(at), 16).replace('T', ' ')} ${zone}`;
}

function wallText(wall: number, length: number): string {
  return new Date(wall).toISOString().slice(0, length);
}
