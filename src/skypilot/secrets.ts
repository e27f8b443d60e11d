/** SkyPilot's configuration holds tokens in the address of the policy, keys of its API, passwords of databases. */
import { hideCredentials } from '../config/secret.ts';
import { isMapping, member, setMember } from '../config/tree.ts';
import { YamlDocument } from '../config/yaml/document.ts';
import { YamlError } from '../config/yaml/error.ts';

const HIDDEN = '****';
const WORDS = 'token|password|passwd|passphrase|secret|credential|(?:api|access|private)[_-]?key';
/** `HF_TOKEN`, `apiKey`, `db-password`; `db` is the whole address of a database. */
const SECRET_NAME = new RegExp(`^db$|(?:^|[_-])(?:${WORDS})s?$`, 'i');
/** In addresses and in scripts: `?token=…`, `export HF_TOKEN=…`, `--api-key …`; a reference such as `$HF_TOKEN` is none. */
const ASSIGNED = new RegExp(
  `((?:(?<![\\w-])[\\w-]*(?:${WORDS})s?|[?&](?:key|sig|signature))\\s*(?:=|:\\s)\\s*|--[\\w-]*(?:${WORDS})\\s+|\\bbearer\\s+)(?!["']?\\$)("[^"\\n]*"|'[^'\\n]*'|[^\\s&#;"']+)`,
  'gi',
);

/**
 * A copy of the same form for people's eyes. What is named as a secret is hidden, and so are the `secrets` of a task as a
 * whole, and in texts what looks like one. The names of the secrets of a cluster are none: `imagePullSecrets`, `secretName`.
 */
export function withoutSecrets(value: unknown, name = ''): unknown {
  if (name === 'secrets') {
    return hidden(value);
  }
  if (isMapping(value)) {
    const variable = member(value, 'name');
    const copy: Record<string, unknown> = {};
    for (const [below, item] of Object.entries(value)) {
      // The variables of a container: `name: HF_TOKEN`, `value: …`.
      const isValue = below === 'value' && typeof variable === 'string';
      setMember(copy, below, withoutSecrets(item, isValue ? variable : below));
    }
    return copy;
  }
  if (Array.isArray(value)) {
    return value.map((item) => withoutSecrets(item, name));
  }
  if (SECRET_NAME.test(name.replace(/([a-z\d])([A-Z])/g, '$1_$2'))) {
    return hidden(value);
  }
  if (typeof value !== 'string') {
    return value;
  }
  return name === '_user_specified_yaml' ? withoutSecretsInYaml(value) : withoutSecretsInText(value);
}

/** All scalars in a value, but for what is empty. */
function hidden(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(hidden);
  }
  if (isMapping(value)) {
    const copy: Record<string, unknown> = {};
    for (const [below, item] of Object.entries(value)) {
      setMember(copy, below, hidden(item));
    }
    return copy;
  }
  return value === null || value === '' || typeof value === 'boolean' ? value : HIDDEN;
}

function withoutSecretsInText(text: string): string {
  return hideCredentials(text).replace(ASSIGNED, `$1${HIDDEN}`);
}

/** SkyPilot keeps the task as the user wrote it, with its secrets, as a text in the task. */
function withoutSecretsInYaml(text: string): string {
  try {
    const document = YamlDocument.parse(text);
    return document.with(withoutSecrets(document.value)).toString();
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      return HIDDEN;
    }
    throw thrown;
  }
}
