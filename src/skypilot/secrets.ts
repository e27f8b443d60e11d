/** SkyPilot's configuration holds tokens in the address of the policy, keys of its API, passwords of databases. */
import { hideCredentials } from '../config/secret.ts';
import { isMapping, setMember } from '../config/tree.ts';

const HIDDEN = '****';
const SECRET_NAME = /(?:^|_)(?:token|password|passwd|secret|credentials?|(?:api|access|private)_?key)$/i;
const SECRET_PARAMETER = /([?&](?:token|password|secret|(?:api|access)?_?key|sig|signature)=)[^&#\s]+/gi;

/** A copy for people's eyes. `envs` stay as they are; `secrets` of a task are hidden as a whole. */
export function withoutSecrets(value: unknown, name = ''): unknown {
  if (isMapping(value)) {
    const copy: Record<string, unknown> = {};
    for (const [below, item] of Object.entries(value)) {
      const isHidden = name === 'secrets' && item !== null && typeof item !== 'object';
      setMember(copy, below, isHidden ? HIDDEN : withoutSecrets(item, below));
    }
    return copy;
  }
  if (Array.isArray(value)) {
    return value.map((item) => withoutSecrets(item, name));
  }
  if (typeof value !== 'string' || value === '') {
    return value;
  }
  return SECRET_NAME.test(name) ? HIDDEN : hideCredentials(value).replace(SECRET_PARAMETER, `$1${HIDDEN}`);
}
