import { execFileSync, spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readTextFile, systemErrorText } from '../../src/config/read-file.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { configFile } from './helpers.ts';

const MEBIBYTE = 1024 * 1024;

describe('a file', () => {
  it('is read as UTF-8, with byte order mark and line ends', () => {
    const text = '\uFEFF[s]\r\nk = π 🚀\r\n';
    expect(readTextFile(configFile(text))).toBe(text);
    expect(readTextFile(configFile(''))).toBe('');
  });

  it('may have at most 1 MiB', () => {
    expect(readTextFile(configFile('x'.repeat(MEBIBYTE)))).toHaveLength(MEBIBYTE);
    expect(() => readTextFile(configFile('x'.repeat(MEBIBYTE + 1)))).toThrow(
      'it is longer than 1048576 bytes',
    );
  });

  it('without an end is refused, such as /dev/zero', () => {
    expect(() => readTextFile('/dev/zero')).toThrow('it is longer than 1048576 bytes');
  });

  it('may be a pipe, as in --config-file <(…)', () => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', '{ printf "[s]\\n"; sleep 0.2; printf "a = 1\\n"; } > "$0"', pipe]);
    onTestFinished(() => void writer.kill());
    expect(readTextFile(pipe)).toBe('[s]\na = 1\n');
  });

  it.each([
    ['nobody writes to', 'exit'],
    ['is not written to its end', 'printf "[s]"; exec sleep 60'],
  ])('is refused if it is a pipe that %s', (_, script) => {
    const pipe = join(temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', `{ ${script}; } > "$0"`, pipe]);
    onTestFinished(() => void writer.kill());
    expect(() => readTextFile(pipe, 1024, 0.3)).toThrow(
      'nobody has written it to its end within 0.3 seconds',
    );
  });

  it.each([
    ['Latin-1', [0x5b, 0xe9, 0x5d]],
    ['UTF-16', [0xff, 0xfe, 0x5b, 0x00]],
    ['cut off in a character', [0x5b, 0xf0, 0x9f, 0x9a]],
  ])('is refused when it is %s', (_, bytes) => {
    expect(() => readTextFile(configFile(Uint8Array.from(bytes)))).toThrow('it is not UTF-8 text');
  });

  it('that cannot be read is refused with the reason', () => {
    const file = configFile('');
    expect(() => readTextFile(`${file}.nope`)).toThrow(/^there is no such file$/);
    expect(() => readTextFile(temporaryFolder())).toThrow(/^it is a folder$/);
    expect(() => readTextFile(join(file, 'x'))).toThrow(/^a part of its path is not a folder$/);
  });

  it.skipIf(process.getuid?.() === 0)('without permission to read is refused', () => {
    const file = configFile('[s]\n');
    chmodSync(file, 0);
    expect(() => readTextFile(file)).toThrow(/^permission denied$/);
  });
});

it.each([
  [Object.assign(new Error('EACCES: …'), { code: 'EACCES' }), 'permission denied'],
  [Object.assign(new Error('EPERM: …'), { code: 'EPERM' }), 'permission denied'],
  [Object.assign(new Error('ENOSPC: …'), { code: 'ENOSPC' }), 'the disk is full'],
  [Object.assign(new Error('EDQUOT: …'), { code: 'EDQUOT' }), 'the quota of the disk is used up'],
  [Object.assign(new Error('EROFS: …'), { code: 'EROFS' }), 'the file system is read-only'],
  [Object.assign(new Error('ENXIO: …'), { code: 'ENXIO' }), 'nobody reads the pipe'],
  [Object.assign(new Error('EPIPE: …'), { code: 'EPIPE' }), 'nobody reads the pipe'],
  [Object.assign(new Error('too many links'), { code: 'ELOOP' }), 'too many links'],
  [new Error('plain'), 'plain'],
  ['text', 'text'],
])('a system error is described in words: %s', (thrown, text) => {
  expect(systemErrorText(thrown)).toBe(text);
});
