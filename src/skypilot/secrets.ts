/** Hides tokens, keys and passwords of tasks and configurations: by name, by form, and their repetitions. */

import { YamlDocument } from '../base/yaml/document.ts';
import { isMapping, mapMembers, member, type Path, valueAt, YamlError } from '../base/yaml/tree.ts';
import { hideUsers } from '../config/secret.ts';

/** Shorter values are not secret, and hiding them would hide every `1` and `on`. */
const MIN_LENGTH = 4;
/** Minimum length of a line of a multi-line secret to be hidden by itself. */
const MIN_LINE = 8;
/** With more secrets, texts are hidden entirely: searching for each would take too long. */
const MAX_VALUES = 2000;

export class SecretValues {
  readonly #values = new Set<string>();
  /** Longest first, because one may contain another; `undefined` = not sorted yet. */
  #sorted: readonly string[] | undefined;

  /** Collects the secrets of tasks and configurations. */
  static of(...trees: readonly unknown[]): SecretValues {
    const secrets = new SecretValues();
    for (const tree of trees) {
      secrets.#shown(tree, '', isSecretMember);
    }
    return secrets;
  }

  /** A copy of a value without secrets. */
  withoutSecrets(tree: unknown): unknown {
    return this.#hideIn(this.#shown(tree, '', isSecretMember));
  }

  /** A text without secrets, such as a message. */
  hideIn(text: string): string {
    const shown = withoutSecretForms(text, (secret) => this.#add(secret));
    return this.hideKnown(shown);
  }

  /** The length of the longest secret so far, in characters. */
  get longest(): number {
    return this.#inOrder()[0]?.length ?? 0;
  }

  /** A text without the secrets that were collected so far. */
  hideKnown(text: string): string {
    if (this.#values.size > MAX_VALUES) {
      return text === '' ? text : HIDDEN;
    }
    let shown = text;
    for (const value of this.#inOrder()) {
      shown = shown.includes(value) ? shown.replaceAll(value, HIDDEN) : shown;
    }
    return shown;
  }

  /**
   * A copy of the value at a path of a task or configuration, without secrets that its place or form shows.
   * Collects these: hide them elsewhere with `hideKnown`, after the last value.
   */
  shownAt(tree: unknown, path: Path): unknown {
    let value = tree;
    let place: Place = { name: '', isSecret: isSecretMember };
    for (const step of path) {
      if (place.name === 'secrets') {
        return this.#hidden(valueAt(tree, path));
      }
      if (isMapping(value)) {
        place = placeOf(String(step), place.name, member(value, 'name'));
      }
      value = valueAt(value, [step]);
    }
    return this.#shown(value, place.name, place.isSecret);
  }

  #inOrder(): readonly string[] {
    this.#sorted ??= [...this.#values].sort((a, b) => b.length - a.length);
    return this.#sorted;
  }

  #hideIn(shown: unknown): unknown {
    if (typeof shown === 'string') {
      return this.hideKnown(shown);
    }
    if (Array.isArray(shown)) {
      return shown.map((item) => this.#hideIn(item));
    }
    if (isMapping(shown)) {
      return mapMembers(shown, (item) => this.#hideIn(item));
    }
    return this.#values.has(String(shown)) ? HIDDEN : shown;
  }

  /** `isSecret` decides by the name of a member; in `envs` the names are variables. */
  #shown(value: unknown, name: string, isSecret: (name: string) => boolean): unknown {
    if (name === 'secrets') {
      return this.#hidden(value);
    }
    if (isMapping(value)) {
      const variable = member(value, 'name');
      return mapMembers(value, (item, key) => {
        const place = placeOf(key, name, variable);
        return this.#shown(item, place.name, place.isSecret);
      });
    }
    if (Array.isArray(value)) {
      return value.map((item) => this.#shown(item, name, isSecret));
    }
    if (isSecret(name)) {
      return this.#hidden(value);
    }
    if (typeof value !== 'string') {
      return value;
    }
    return name === '_user_specified_yaml'
      ? this.#shownYaml(value)
      : withoutSecretForms(value, (secret) => this.#add(secret));
  }

  /** Hides all scalars in a value, except empty ones. */
  #hidden(value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((item) => this.#hidden(item));
    }
    if (isMapping(value)) {
      return mapMembers(value, (item) => this.#hidden(item));
    }
    if (value === null || value === '' || typeof value === 'boolean') {
      return value;
    }
    this.#add(String(value));
    return HIDDEN;
  }

  /** SkyPilot stores the original YAML of the task, including its secrets, as a string in the task. */
  #shownYaml(text: string): string {
    try {
      return YamlDocument.parseStream(text)
        .map((document) => document.with(this.#shown(document.value, '', isSecretMember)).toString())
        .join('---\n');
    } catch (thrown) {
      if (thrown instanceof YamlError) {
        return HIDDEN;
      }
      throw thrown;
    }
  }

  #add(secret: string): void {
    const value = secret.trim();
    if (value.length < MIN_LENGTH || /^\$|^(?:true|false|null|none)$/i.test(value) || value === HIDDEN) {
      return;
    }
    // Forms that it may take in a message: JSON-escaped, URL-encoded, base64.
    const forms = [
      value,
      JSON.stringify(value).slice(1, -1),
      uriOf(value),
      Buffer.from(value).toString('base64'),
    ];
    this.#sorted = undefined;
    for (const form of forms) {
      this.#values.add(form);
    }
    const lines = value.includes('\n') ? value.split('\n').map((line) => line.trim()) : [];
    for (const line of lines.filter(({ length }) => length >= MIN_LINE)) {
      this.#values.add(line);
    }
  }
}

interface Place {
  readonly name: string;
  readonly isSecret: (name: string) => boolean;
}

/** For the member `key` of the mapping `within`, whose member `name` is `variable`. */
function placeOf(key: string, within: string, variable: unknown): Place {
  // Environment variables of a container: `name: HF_TOKEN`, `value: …`.
  return key === 'value' && typeof variable === 'string'
    ? { name: variable, isSecret: isSecretVariable }
    : { name: key, isSecret: within === 'envs' ? isSecretVariable : isSecretMember };
}

/** Half of a surrogate pair cannot be encoded. */
function uriOf(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * A copy of a value without secrets. Hides members with secret names, the `secrets` of a task, and secrets in
 * texts. Keeps the names of Kubernetes Secrets: `imagePullSecrets`, `secretName`.
 */
export function withoutSecrets(value: unknown): unknown {
  return SecretValues.of(value).withoutSecrets(value);
}

export const HIDDEN = '****';

/** A reference such as `$HF_TOKEN` is not a value. */
const VALUE = `(?!["']?\\$)("[^"\\n]*"|'[^'\\n]*'|[^\\s&#;"']+)`;

/** Tokens with a known prefix. */
const TOKENS = new RegExp(
  `\\b(?:${[
    'gh[opusr]_\\w{16,}|github_pat_\\w{16,}|gl[a-z]{2,6}-[\\w-]{16,}|hf_\\w{16,}|xox[a-z]-[\\w-]{8,}|xapp-[\\w-]{8,}',
    '(?:sk|rk|pk)[-_](?:live_|test_)?[\\w-]{16,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z\\d]{12,}|AIza[\\w-]{30,}|ya29\\.[\\w.-]{16,}',
    'npm_\\w{30,}|pypi-[\\w-]{30,}|dckr_pat_[\\w-]{16,}|do[opr]_v1_\\w{30,}|SG\\.[\\w-]{16,}\\.[\\w-]{16,}|hv[sbr]\\.[\\w-]{16,}',
    'nvapi-[\\w-]{16,}|r8_\\w{30,}|gsk_\\w{30,}|tskey-[\\w-]{16,}|shp(?:at|ca|pa|ss)_\\w{16,}|AGE-SECRET-KEY-\\w{16,}',
    '(?:bot)?\\d{8,12}:AA[\\w-]{32,34}',
  ].join('|')})`,
  'g',
);
/** A JSON web token if it has a second part. The first is read without it, too: `eyJ-eyJ-…` is read once only. */
const WEB_TOKEN = /\beyJ[\w-]{8,}(\.[\w-]{8,}(?:\.[\w-]*)?)?/g;
/** Also matches if the end is cut off. */
const PEM = /-----BEGIN [A-Z\d ]{1,60}-----[\s\S]*?(?:-----END [A-Z\d ]{1,60}-----|$)/g;
/** `export HF_TOKEN=…`, `password: …`; decided by the name. */
const ASSIGNED = new RegExp(`(?<![\\w-])([A-Za-z_][\\w-]{0,199})(\\s*=\\s*|"?:\\s+)${VALUE}`, 'g');
/** `?token=…` in a URL, `--api-key …`, `Authorization: Bearer …`. */
const PARAMETER = new RegExp(`([?&](?:[\\w-]{1,50}-)?(?:key|sig|signature|code|auth)=)${VALUE}`, 'gi');
const FLAG = new RegExp(`(?<![\\w-])(--([\\w-]{1,100})(?:\\s+|=))${VALUE}`, 'g');
/** Up to 300 characters of a line, without another one of this command: so that each is read once only. */
const near = (command: string) => `\\b${command}\\s(?:(?!\\b${command}\\s)[^\\n]){0,300}?`;
/** `curl -u lee:…`, `docker login -p …`, `sshpass -p …`, `wandb login …`. */
const ARGUMENT = new RegExp(
  `(${near('curl')}(?<=\\s)(?:-u|-U|--user|--proxy-user)[ =]?["']?[^\\s:"'$]{1,100}:|${near('login')}(?<=\\s)-p\\s+|\\bsshpass\\s+-p\\s*|\\bwandb\\s+login\\s+(?:--\\w{1,20}\\s+)?(?!-))${VALUE}`,
  'g',
);
/** Whoever has the address of such a webhook can use it. */
const WEBHOOK =
  /(\/\/(?:hooks\.slack\.com|(?:\w{1,20}\.)?discord(?:app)?\.com\/api(?:\/v\d{1,3})?\/webhooks|[\w-]{1,100}\.webhook\.office\.com)\/)([^\s"'`<>()$]+)/gi;
const BEARER = new RegExp(
  `(\\bbearer\\s+|\\bauthorization"?\\s*[:=]\\s*"?(?:basic|token|bearer)\\s+)${VALUE}`,
  'gi',
);

/** Each of these forms contains one of these: most texts contain none and are not searched. */
const SUSPICIOUS = /[=:@?&]|--|bearer|login|sshpass|[\w.-]{11}/i;

/** Hides everything in a text that looks like a secret. Calls `found` with each secret. */
function withoutSecretForms(text: string, found: (secret: string) => void): string {
  if (!SUSPICIOUS.test(text)) {
    return text;
  }
  const hide = (secret: string) => {
    found(secret.replace(/^(["'])(.*)\1$/s, '$2'));
    return HIDDEN;
  };
  const shown = hideUsers(
    text
      .replace(PEM, hide)
      .replace(WEBHOOK, (_, before: string, path: string) => before + hide(path))
      .replace(/:\/\/[^\s/@]+@/g, (credentials) => {
        const [, password] = /:([^:@]+)@$/.exec(credentials.slice(3)) ?? [];
        found(password ?? credentials.slice(3, -1));
        return credentials;
      }),
  );
  return shown
    .replace(WEB_TOKEN, (all, second?: string) => (second === undefined ? all : hide(all)))
    .replace(TOKENS, hide)
    .replace(PARAMETER, (_, before: string, value: string) => before + hide(value))
    .replace(ARGUMENT, (_, before: string, value: string) => before + hide(value))
    .replace(BEARER, (_, before: string, value: string) => before + hide(value))
    .replace(FLAG, (all, before: string, name: string, value: string) =>
      isSecretMember(name) ? before + hide(value) : all,
    )
    .replace(ASSIGNED, (all, name: string, between: string, value: string) => {
      const isSecret = /^[A-Z_\d]+$/.test(name) ? isSecretVariable(name) : isSecretMember(name);
      return isSecret ? name + between + hide(value) : all;
    });
}

/** Recognizes secrets by name. Rather hides too much than too little: users find values in the file. */
const WORDS =
  'token|password|passwd|passphrase|pwd|pass|secret|credential|cred|pat|jwt|dsn|(?:api|access|private|signing|encryption|ssh|account)[_-]?key|connection[_-]?string';
/** `HF_TOKEN`, `apiKey`, `db-password`, `PGPASSWORD`; `db` is a database URL. */
const MEMBER = new RegExp(`^db$|(?:^|[_-])(?:${WORDS})s?$|(?:password|passwd|passphrase)$`, 'i');

/** Words that make a variable secret, anywhere in its name: `SSH_KEY_B64`, `GITHUB_PAT`, `SESSION_COOKIE`. */
const WORD =
  /^(?:keys?|pats?|jwts?|auth|creds?|cookies?|sessions?|bearer|private|dsn|pwd|pw|salt|signature|sig|webhook|cert|otp|pin)$/;
/** Parts of a word that make a variable secret: `PGPASSFILE`, `DBPASS`, `APIKEY`. */
const PART = /pass|secret|token(?!iz)|credential|apikey/;

function words(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);
}

/** Whether a member such as `service_account_token` is secret. Names of Kubernetes Secrets are not. */
export function isSecretMember(name: string): boolean {
  return MEMBER.test(name.slice(-100).replace(/([a-z\d])([A-Z])/g, '$1_$2'));
}

/** Whether an environment variable is secret. Stricter: all of `AWS_…`, and every name with a key in it. */
export function isSecretVariable(name: string): boolean {
  const bounded = name.slice(0, 500);
  return (
    /^aws_/i.test(bounded) ||
    isSecretMember(name) ||
    words(bounded).some((word) => WORD.test(word) || PART.test(word))
  );
}
