/**
 * The last step of `npm run build`. Node takes about a millisecond for each loaded file: `check` would load
 * some 230, `serve` 740, with 262 of kysely. This merges the modules of most starts into a few files of
 * `dist/src/merged`. Each merged module keeps its own file, which exports its part: it stays one module,
 * whatever the import path.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
const MERGED = join(DIST, 'src/merged');
/** Marks imports of modules that are not merged. */
const KEPT = 'kept:';

/** Packages to merge, by the file that contains them. */
const PACKAGES = {
  packages: ['zod', 'ini', 'fastest-levenshtein'],
  command: ['commander'],
  database: ['kysely'],
};
/** Without zod: `check` decides how its schemas run before it creates any. */
const start = withImports('src/cli/main.js', 'src/cli/check.js');
// Excluded: it runs the command when it is loaded.
start.delete(join(DIST, 'src/cli/main.js'));
/** Only modules of no other command, which would otherwise load all of it. */
const service = [...withImports('src/server/service.js')].filter((file) =>
  file.startsWith(join(DIST, 'src/server')),
);
/** A module belongs to the first file that contains it. */
const MODULES = {
  command: new Set([...start].filter((file) => file.startsWith(join(DIST, 'src/cli')))),
  // Separate: on Node 20, the thread that resolves imports loads it.
  hook: withImports('src/plugin/packages-hook.js'),
  base: start,
  library: withImports('src/index.js'),
  service: withImports('src/server/configuration/sections.js'),
  server: new Set(service),
};

const isMergedPackage = (name) => Object.values(PACKAGES).flat().includes(name);
const isMergedModule = (file) => Object.values(MODULES).some((files) => files.has(file));

// An image does not contain all of them.
const folders = ['src', 'filters', 'policies'].map((folder) => join(DIST, folder)).filter(existsSync);
const modules = folders.flatMap(modulesIn);
const bundle = await rolldown({
  input: Object.fromEntries(modules.map((file) => [relative(DIST, file).replace(/\.js$/, ''), file])),
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  external: (id) => /^[^./]/.test(id) && !isMergedPackage(id),
  plugins: [{ name: 'compiled', resolveId: kept, load: compiled, renderChunk: withPaths }],
  checks: { ineffectiveDynamicImport: false },
});
await bundle.write({
  dir: DIST,
  format: 'esm',
  sourcemap: true,
  comments: { legal: true, annotation: false, jsdoc: false },
  entryFileNames: '[name].js',
  chunkFileNames: `${relative(DIST, MERGED)}/[name].js`,
  codeSplitting: { groups: groups(), includeDependenciesRecursively: false },
});
writeFileSync(join(MERGED, 'licenses.txt'), licenses());

/** Modules and their static imports. */
function withImports(...paths) {
  const found = new Set(paths.map((path) => join(DIST, path)));
  for (const file of found) {
    for (const { source } of parseAst(readFileSync(file, 'utf8')).body) {
      if (source?.value.startsWith('.')) {
        found.add(resolve(dirname(file), source.value));
      }
    }
  }
  return found;
}

/** Without the console's scripts, which browsers load. */
function modulesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => file.endsWith('.js') && !file.includes(join('console', 'browser')));
}

function groups() {
  const order = [...new Set([...Object.keys(PACKAGES), ...Object.keys(MODULES)])];
  return order.map((name, index) => {
    const folders = (PACKAGES[name] ?? []).map((one) => join(sep, 'node_modules', one, sep));
    return {
      name,
      priority: order.length - index,
      test: (id) => MODULES[name]?.has(id) === true || folders.some((folder) => id.includes(folder)),
    };
  });
}

/** An import of a module that is not merged still refers to its file. */
function kept(specifier, importer) {
  if (!specifier.startsWith('.') || !importer?.startsWith(DIST)) {
    return null;
  }
  const file = resolve(dirname(importer), specifier);
  return isMergedModule(file) ? null : { id: `${KEPT}${file}`, external: true };
}

function withPaths(code, { fileName }) {
  const folder = dirname(join(DIST, fileName));
  const written = code.replaceAll(new RegExp(`(["'])${KEPT}(.+?)\\1`, 'g'), (_, quote, file) => {
    const path = relative(folder, file);
    return `${quote}${path.startsWith('.') ? path : `./${path}`}${quote}`;
  });
  // The line numbers do not change.
  return { code: written, map: null };
}

/** The output of tsc, with its source map. In a merged module, `import.meta.url` is that of its own file. */
function compiled(id) {
  if (!id.startsWith(DIST)) {
    return null;
  }
  const own = `new URL(${JSON.stringify(relative(MERGED, id))}, import.meta.url).href`;
  const code = readFileSync(id, 'utf8');
  return {
    code: isMergedModule(id) ? code.replaceAll('import.meta.url', own) : code,
    map: readFileSync(`${id}.map`, 'utf8'),
  };
}

function licenses() {
  return Object.values(PACKAGES)
    .flat()
    .map((name) => {
      const folder = join(ROOT, 'node_modules', name);
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      return `${name}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    })
    .join('\n---\n\n');
}
