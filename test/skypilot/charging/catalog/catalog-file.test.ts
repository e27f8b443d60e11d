import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { readConfiguration } from '../../../../src/enforcement/configuration.ts';
import {
  catalogProblems,
  openCatalogs,
  readCatalogFile,
} from '../../../../src/skypilot/charging/catalog/catalog-file.ts';
import { parsePrice } from '../../../../src/skypilot/charging/catalog/machines.ts';
import { skypilotSection } from '../../../../src/skypilot/section.ts';
import { confFile, projectFile } from '../../../support/files.ts';

const folder = mkdtempSync(join(tmpdir(), 'catalog-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HEAD = 'InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region';
const LINE = 'm6i.large,,,2,8,,0.096,0.03,us-east-1';

function written(content: string | Uint8Array, name = 'vms.csv'): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function mistakesIn(content: string | Uint8Array) {
  const { mistakes } = await readCatalogFile(written(content));
  return mistakes.map(({ line, message }) => `${line}: ${message}`);
}

describe('a price', () => {
  it.each([
    ['3.06', 3_060_000n],
    ['32.772599999999997', 32_772_600n],
    ['0.0000001', 1n],
    ['1e-3', 1000n],
    ['1.5E2', 150_000_000n],
    ['0', 0n],
    ['.5', 500_000n],
    ['1000000', 1_000_000_000_000n],
  ])('of %s is exact, and rounded up', (text, price) => {
    expect(parsePrice(text)).toBe(price);
  });

  it.each(['-1', 'nan', 'NaN', 'inf', '1e999', '1000001', '', '.', '1_0', '٣', `1${'0'.repeat(60)}`])(
    'is not %s',
    (text) => {
      expect(parsePrice(text)).toBeUndefined();
    },
  );
});

describe('a catalog', () => {
  it.each(['aws', 'gcp'])('of the examples has no mistake: %s', async (cloud) => {
    const path = projectFile(`examples/skypilot-catalog/${cloud}.csv`);
    expect((await readCatalogFile(path)).mistakes).toEqual([]);
  });

  it.each([
    ['nothing', '', '1: expected the names of the columns, got an empty file'],
    ['no machines', `${HEAD}\n`, '2: expected a line for each machine, got none'],
    ['no prices', `${HEAD.replace(',Price', ',Cost')}\n${LINE}\n`, '1: expected a column Price'],
    ['a column twice', `${HEAD},Price\n${LINE},1\n`, '1: expected the column "Price" once'],
    [
      'a text as price',
      `${HEAD}\n${LINE}\n${LINE.replace('0.096', 'free')}\n`,
      '3: Price: expected a price for each hour from 0 to 1000000, got "free"',
    ],
    [
      'a price of nan',
      `${HEAD}\n${LINE.replace('0.03', 'nan')}\n`,
      '2: SpotPrice: expected a price for each hour from 0 to 1000000, got "nan"',
    ],
    [
      'a wrong size',
      `${HEAD}\n${LINE.replace(',8,', ',many,')}\n`,
      '2: MemoryGiB: expected a number, 0 or more, got "many"',
    ],
    [
      'an accelerator without a number',
      `${HEAD}\n${LINE.replace('large,,', 'large,A100,')}\n`,
      '2: AcceleratorCount: expected a number greater than 0, got ""',
    ],
    [
      'a line of nothing',
      `${HEAD}\n,,,2,8,,1,1,us-east-1\n`,
      '2: InstanceType: expected an instance type or an accelerator, got ""',
    ],
    ['a cell too few', `${HEAD}\n${LINE}\nm6i.large,,,2\n`, '3: expected 9 cells, got 4'],
    [
      'a line that is cut off',
      `${HEAD}\n${LINE}\n${LINE.slice(0, -3)}`,
      '3: expected a line break at the end of the file: it is cut off',
    ],
    ['an open quote', `${HEAD}\n"${LINE}\n`, '2: a quote is opened and never closed'],
    ['a zero byte', `${HEAD}\n${LINE}\n${LINE}\0\n`, '3: expected UTF-8, got other bytes'],
  ])('with %s is refused with its line', async (_, content, mistake) => {
    expect(await mistakesIn(content)).toEqual([mistake]);
  });

  it('of other bytes than UTF-8 is refused with the line', async () => {
    const bytes = Buffer.concat([Buffer.from(`${HEAD}\n${LINE}\n`), Buffer.from([0xe9, 10])]);
    expect(await mistakesIn(bytes)).toEqual(['3: expected UTF-8, got other bytes']);
  });

  it('counts the lines of a cell that has several', async () => {
    expect(
      await mistakesIn(`${HEAD}\n${LINE.replace('8,,', '8,"a\nb",')}\n${LINE.replace('0.03', 'x')}\n`),
    ).toEqual([expect.stringMatching(/^4: SpotPrice/)]);
  });

  it('tells of twenty mistakes at most', async () => {
    expect(await mistakesIn(`${HEAD}\n${`${LINE.replace('0.03', 'x')}\n`.repeat(100)}`)).toHaveLength(20);
  });

  it('is a file, and no device, folder or pipe', async () => {
    for (const path of ['/dev/zero', folder, '/dev/stdin/none']) {
      const { mistakes } = await readCatalogFile(path);
      expect(mistakes).toHaveLength(1);
    }
  });

  it('is read again when it has changed, and only then', async () => {
    const path = written(`${HEAD}\n${LINE}\n`, 'again.csv');
    const first = await openCatalogs({ aws: path }, 'x');
    expect((await openCatalogs({ aws: path }, 'x')).get('aws')).toBe(first.get('aws'));
    appendFileSync(path, 'm6i.x');
    await expect(openCatalogs({ aws: path }, 'x')).rejects.toThrow(`${path}:3: expected a line break`);
  });
});

describe('the option', () => {
  it('names clouds that have catalogs, each once', async () => {
    const path = projectFile('examples/skypilot-catalog/aws.csv');
    const messages = async (files: Record<string, string>) =>
      (await catalogProblems(files, 'usage_budget_catalog')).map(({ message }) => message);
    expect(await messages({ AWS: path, digitalocean: path })).toEqual([]);
    expect(await messages({ k8s: path })).toEqual([expect.stringContaining('has no catalog; give rates')]);
    expect(await messages({ asw: path })).toEqual([expect.stringContaining('got "asw"')]);
    expect(await messages({ do: path, DigitalOcean: path })).toHaveLength(2);
    expect(await messages(JSON.parse(`{"__proto__": "${path}"}`))).toHaveLength(1);
  });

  it('is reported with the file and line of a mistake, and its files are watched', async () => {
    const path = written(`${HEAD}\n${LINE.replace('0.096', 'x')}\n`, 'wrong.csv');
    const file = confFile(
      `[skypilot]\nadmin_policies = UsageBudgetPolicy\napi_server = http://127.0.0.1:1\nusage_budget_unit = USD\nusage_budget_catalog = aws:${path}\n`,
    );
    const { problems, namedFiles } = await readConfiguration({ environment: {}, configFiles: [file] }, [
      skypilotSection,
    ]);
    expect(problems.filter(({ severity }) => severity === 'error').map(formatProblem)).toEqual([
      `${path}:2: Price: expected a price for each hour from 0 to 1000000, got "x"`,
    ]);
    expect(namedFiles).toContain(path);
  });
});
