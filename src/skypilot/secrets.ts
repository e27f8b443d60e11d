/**
 * SkyPilot's tasks and configurations hold tokens, keys, passwords. What is a secret by its name or its form is hidden where it
 * stands, and wherever else its value appears in what is shown.
 */

import { YamlDocument } from '../yaml/document.ts';
import { YamlError } from '../yaml/error.ts';
import { isMapping, member, setMember } from '../yaml/tree.ts';
import { HIDDEN, withoutSecretForms } from './secret-forms.ts';
import { isSecretMember, isSecretVariable } from './secret-names.ts';

/** What is shorter says nothing, and would hide every `1` and `on`. */
const MIN_LENGTH = 4;
/** Of a text of several lines each line is known, from this length on. */
const MIN_LINE = 8;
/** With more of them, texts are hidden as a whole: looking for each would take too long. */
const MAX_VALUES = 2000;

export class SecretValues {
  readonly #values = new Set<string>();

  /** Those of tasks and configurations. */
  static of(...trees: readonly unknown[]): SecretValues {
    const secrets = new SecretValues();
    for (const tree of trees) {
      secrets.#shown(tree, '', isSecretMember);
    }
    return secrets;
  }

  /** A copy of the same form for people's eyes. */
  withoutSecrets(tree: unknown): unknown {
    return this.#hideIn(this.#shown(tree, '', isSecretMember));
  }

  /** A text, such as a message, for people's eyes. */
  hideIn(text: string): string {
    const shown = withoutSecretForms(text, (secret) => this.#add(secret));
    return this.#hideValues(shown);
  }

  #hideValues(text: string): string {
    if (this.#values.size > MAX_VALUES) {
      return text === '' ? text : HIDDEN;
    }
    let shown = text;
    // The longest first: one may be a part of another.
    for (const value of [...this.#values].sort((a, b) => b.length - a.length)) {
      shown = shown.includes(value) ? shown.replaceAll(value, HIDDEN) : shown;
    }
    return shown;
  }

  #hideIn(shown: unknown): unknown {
    if (typeof shown === 'string') {
      return this.#hideValues(shown);
    }
    if (Array.isArray(shown)) {
      return shown.map((item) => this.#hideIn(item));
    }
    if (isMapping(shown)) {
      const copy: Record<string, unknown> = {};
      for (const [name, item] of Object.entries(shown)) {
        setMember(copy, name, this.#hideIn(item));
      }
      return copy;
    }
    return this.#values.has(String(shown)) ? HIDDEN : shown;
  }

  /** `isSecret` = what decides on the names in a mapping: in `envs` they are variables. */
  #shown(value: unknown, name: string, isSecret: (name: string) => boolean): unknown {
    if (name === 'secrets') {
      return this.#hidden(value);
    }
    if (isMapping(value)) {
      const variable = member(value, 'name');
      const below = name === 'envs' ? isSecretVariable : isSecretMember;
      const copy: Record<string, unknown> = {};
      for (const [key, item] of Object.entries(value)) {
        // The variables of a container: `name: HF_TOKEN`, `value: …`.
        const shown =
          key === 'value' && typeof variable === 'string'
            ? this.#shown(item, variable, isSecretVariable)
            : this.#shown(item, key, below);
        setMember(copy, key, shown);
      }
      return copy;
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

  /** All scalars in a value, but for what is empty. */
  #hidden(value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((item) => this.#hidden(item));
    }
    if (isMapping(value)) {
      const copy: Record<string, unknown> = {};
      for (const [below, item] of Object.entries(value)) {
        setMember(copy, below, this.#hidden(item));
      }
      return copy;
    }
    if (value === null || value === '' || typeof value === 'boolean') {
      return value;
    }
    this.#add(String(value));
    return HIDDEN;
  }

  /** SkyPilot keeps the task as the user wrote it, with its secrets, as a text in the task. */
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
    // As it may stand in a message: quoted, in an address, in a header or a secret of a cluster.
    const forms = [
      value,
      JSON.stringify(value).slice(1, -1),
      uriOf(value),
      Buffer.from(value).toString('base64'),
    ];
    for (const form of forms) {
      this.#values.add(form);
    }
    const lines = value.includes('\n') ? value.split('\n').map((line) => line.trim()) : [];
    for (const line of lines.filter(({ length }) => length >= MIN_LINE)) {
      this.#values.add(line);
    }
  }
}

/** Half a character has no such form. */
function uriOf(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * A copy of the same form for people's eyes. What is named as a secret is hidden, and so are the `secrets` of a task as a
 * whole, and in texts what looks like one. The names of the secrets of a cluster are none: `imagePullSecrets`, `secretName`.
 */
export function withoutSecrets(value: unknown): unknown {
  return SecretValues.of(value).withoutSecrets(value);
}
