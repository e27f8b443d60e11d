/**
 * Scripts, style and icon of the console, under `/assets/<hash>/<name>`. The hash covers all of them, so that
 * browsers may cache them for good and scripts find each other by relative names. They are read once:
 * paths of clients are never opened.
 */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import Router from '@koa/router';
import type { Context } from 'koa';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { STYLE } from './style.ts';

const require = createRequire(import.meta.url);

/** uPlot's small build is a script that declares a global: the export turns it into a module. */
const ofUplot = (file: string) => readFileSync(require.resolve(`uplot/dist/${file}`), 'utf8');
const uplot = () => `${ofUplot('uPlot.iife.min.js')}\nexport default uPlot;\n`;

const ASSETS_PATH = '/assets';
const JAVASCRIPT = 'text/javascript; charset=utf-8';

interface Asset {
  readonly type: string;
  readonly text: string;
}

/** Scripts are those compiled by `npm run build`, even if the service runs from source. */
function readAssets(): Map<string, Asset> {
  const folder = dirname(require.resolve('#browser/main.js'));
  const scripts = readdirSync(folder)
    .filter((name) => name.endsWith('.js'))
    .sort();
  return new Map([
    ['style.css', { type: 'text/css; charset=utf-8', text: ofUplot('uPlot.min.css') + STYLE }],
    ['icon.svg', { type: 'image/svg+xml', text: ICON }],
    ['uplot.js', { type: JAVASCRIPT, text: uplot() }],
    ...scripts.map((name): [string, Asset] => [
      name,
      {
        type: JAVASCRIPT,
        text: readFileSync(join(folder, name), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''),
      },
    ]),
  ]);
}

let kept: { readonly hash: string; readonly files: ReadonlyMap<string, Asset> } | undefined;

/** Read once, at the first page, so that a service without console users does not load them. */
function assets() {
  if (kept === undefined) {
    const files = readAssets();
    kept = { hash: hash('sha256', JSON.stringify([...files]), 'base64url').slice(0, 16), files };
  }
  return kept;
}

export function assetPath(name: 'style.css' | 'icon.svg' | 'main.js'): string {
  return `${ASSETS_PATH}/${assets().hash}/${name}`;
}

const ENCODINGS = {
  br: promisify(brotliCompress),
  gzip: promisify(gzip),
  identity: async (bytes: Buffer) => bytes,
} as const;
type Encoding = keyof typeof ENCODINGS;

/** Compressed files by name and encoding. Each is compressed once, off the main thread. */
const compressed = new Map<string, Promise<Buffer>>();

function bytesOf(name: string, text: string, encoding: Encoding): Promise<Buffer> {
  const key = `${encoding} ${name}`;
  const made = compressed.get(key) ?? ENCODINGS[encoding](Buffer.from(text));
  compressed.set(key, made);
  return made;
}

/** Public, since they hold no secrets: the login page needs its style. */
export function assetRoutes(): Router {
  const router = new Router(EXACT);
  router.get(`${ASSETS_PATH}/:hash/:name`, async (ctx: Context) => {
    stateOf(ctx).route = ASSETS_PATH;
    const { name = '' } = ctx.params;
    const asset = assets().files.get(name);
    if (asset === undefined) {
      ctx.throw(404, 'there is nothing at this path');
    }
    const best = ctx.acceptsEncodings('br', 'gzip', 'identity');
    const encoding = best === 'br' || best === 'gzip' ? best : 'identity';
    ctx.set({
      // Another hash means another version, whose page came from another replica: browsers must revalidate.
      'Cache-Control': ctx.params.hash === assets().hash ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
      ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
    });
    ctx.body = await bytesOf(name, asset.text, encoding);
    ctx.type = asset.type;
  });
  return router;
}

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1" y="5" width="14" height="6" rx="1.5" fill="#fff" stroke="#1d5bbf"/><rect x="1" y="5" width="9" height="6" rx="1.5" fill="#1d5bbf"/></svg>';
