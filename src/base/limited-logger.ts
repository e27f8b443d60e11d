/** Limits the lines that clients can cause: repeating one request must not fill the disk of the log. */
import type { Logger } from './logger.ts';

/** Lines of one kind in the current minute. */
interface Kind {
  readonly level: 'warn' | 'error';
  readonly name: string;
  logged: number;
  suppressed: number;
  /** What the logged lines said. At most `2 * MAX_LINES`. */
  readonly causes: Set<string>;
}

const MAX_LINES = 30;
const WINDOW_MS = 60_000;
/** Further kinds share one limit. */
const MAX_KINDS = 1000;
/** In characters: what is remembered of a line. */
const MAX_CAUSE = 300;

/**
 * A logger that limits warnings and errors: 30 per minute and kind, then up to 30 more with a message or an `error` that
 * this minute has not seen, so that repetitions do not hide another cause. At the end of the minute a line counts the
 * others in `suppressed`.
 */
export class LimitedLogger implements Logger {
  readonly debug: Logger['debug'];
  readonly info: Logger['info'];
  readonly warn: Logger['warn'];
  readonly error: Logger['error'];
  readonly #logger: Logger;
  readonly #by: string | undefined;
  readonly #kinds = new Map<string, Kind>();
  #window: NodeJS.Timeout | undefined;

  /** `by`: the field that tells kinds apart, such as `filter`. Default: the message. */
  constructor(logger: Logger, by?: string) {
    this.#logger = logger;
    this.#by = by;
    this.debug = logger.debug.bind(logger);
    this.info = logger.info.bind(logger);
    this.warn = this.#limited('warn');
    this.error = this.#limited('error');
  }

  /** Logs how many lines were suppressed. */
  close(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    const by = this.#by;
    for (const { level, name, suppressed } of this.#kinds.values()) {
      if (suppressed > 0) {
        const fields = by === undefined ? { suppressed } : { [by]: name, suppressed };
        this.#logger[level](
          fields,
          `more than are logged${by === undefined ? `: ${name}` : ` of this ${by}`}`,
        );
      }
    }
    this.#kinds.clear();
  }

  #limited(level: Kind['level']): Logger['warn'] {
    const write = (...line: [unknown, string?]) => {
      if (this.#hasRoom(level, line)) {
        this.#logger[level](...line);
      }
    };
    return write as Logger['warn'];
  }

  #hasRoom(level: Kind['level'], [first, second]: readonly [unknown, string?]): boolean {
    const fields: Readonly<Record<string, unknown>> =
      typeof first === 'object' && first !== null ? { ...first } : {};
    const message = typeof first === 'string' ? first : (second ?? '');
    const kind = this.#kindOf(level, this.#by === undefined ? message : String(fields[this.#by] ?? ''));
    const cause = `${message}\n${fields.rule}\n${fields.error}`.slice(0, MAX_CAUSE);
    if (kind.logged >= MAX_LINES && (kind.causes.has(cause) || kind.logged >= 2 * MAX_LINES)) {
      kind.suppressed += 1;
      return false;
    }
    kind.logged += 1;
    kind.causes.add(cause);
    return true;
  }

  #kindOf(level: Kind['level'], wanted: string): Kind {
    this.#window ??= setTimeout(() => this.close(), WINDOW_MS).unref();
    const name = this.#kinds.has(`${level} ${wanted}`) || this.#kinds.size < MAX_KINDS ? wanted : 'others';
    const known = this.#kinds.get(`${level} ${name}`);
    const kind = known ?? { level, name, logged: 0, suppressed: 0, causes: new Set<string>() };
    this.#kinds.set(`${level} ${name}`, kind);
    return kind;
  }
}
