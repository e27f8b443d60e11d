/** SkyPilot's patterns, in plain words. A test holds that each of the data has words. */

const WORDS: readonly (readonly [start: string, words: string])[] = [
  ['^[0-9]+(kb|ki|mb|mi|', 'a size such as 256GB'],
  ['^[0-9]+(b|k|m|g|t|p|', 'a size such as 512M'],
  ['^[0-9]+(m|h|d|w|', 'a duration such as 10m'],
  ['^(?:(?:[-+]?(?:\\d+', 'a duration such as 1h30m'],
  ['^(?:(?i:(aws|', 'a cloud with optional region and zone such as aws/us-east-1 or k8s/my-context'],
  ['^[^\\n]*$', 'a string on one line'],
  ['^all$', '"all"'],
  ['^https?://.*$', 'an http or https URL'],
  ['^[a-zA-Z0-9.-]+$', 'a host name'],
  ['^(https|s3|gs|r2|cos)://.+', 'a bucket URL that starts with s3://, gs://, r2://, cos:// or https://'],
  [
    '^(?:[-a-z0-9]+/)?[-a-z0-9]+$',
    'the name of a VPC such as my-vpc or my-project/my-vpc (lowercase letters, digits and hyphens)',
  ],
  ['^(/|~/|~$)', 'a path that starts with / or ~'],
  ['^sky_.+$', 'a token that starts with sky_'],
  ['^[a-zA-Z_][a-zA-Z0-9_]*(\\.', 'a dotted name such as my_package.MyPolicy'],
  ['^[a-zA-Z0-9._-][a-zA-Z0-9./_-]*$', 'a relative path of letters, digits and ._-/'],
  ['^[a-zA-Z_][a-zA-Z0-9_]*$', 'a name of letters, digits and _, not starting with a digit'],
  ['^[A-Z0-9]+(?::[0-9]+)?$', 'an accelerator such as A100:8'],
];

/** The names of a pattern that is a list of them, `^(a|b)$`, or in which they come first, `(?i:(a|b))`. */
export function namesInPattern(pattern: string): readonly string[] {
  const [, list = ''] = /^\^\(([\w|]+)\)\$$/.exec(pattern) ?? /\(\?i:\(([\w|]+)\)\)/.exec(pattern) ?? [];
  return list === '' ? [] : list.split('|');
}

/** What text a pattern matches. */
export function patternWords(pattern: string): string {
  return WORDS.find(([start]) => pattern.startsWith(start))?.[1] ?? `a string that matches ${pattern}`;
}
