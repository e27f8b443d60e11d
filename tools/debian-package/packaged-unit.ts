/** Adapts the units of etc/systemd for the Debian package. */

const CHANGES: readonly (readonly [from: string, to: string])[] = [
  ['# Copy it to /etc/systemd/system. Change it', '# Change it'],
  [
    '# npm installs the command in /usr/bin or /usr/local/bin; systemd looks in both.\nExecStart=blazar-enforcement ',
    'ExecStart=/usr/bin/blazar-enforcement ',
  ],
  ['ExecReload=blazar-enforcement ', 'ExecReload=/usr/bin/blazar-enforcement '],
  ['/etc/blazar/', '/etc/blazar-enforcement/'],
  ['A user that exists only while the service runs, and owns', 'The user of the package, which owns'],
  ['A user that exists only while one of them runs, and owns', 'The user of the package, which owns'],
  ['DynamicUser=yes\nUser=blazar-enforcement\n', 'DynamicUser=yes\n'],
  ['DynamicUser=yes\n', 'User=blazar-enforcement\nGroup=blazar-enforcement\n'],
];

/** With a permanent user, so that files of its group keep secrets, and commands can run as this user. */
export function packagedUnit(unit: string): string {
  return CHANGES.reduce((text, [from, to]) => text.replaceAll(from, to), unit);
}
