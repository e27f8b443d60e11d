import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/config/yaml/document.ts';
import { parseDocument, isScalar } from 'yaml';
import { dialect } from '../../../src/config/yaml/dialect.ts';
import { Python } from './python.ts';
const python = new Python();
afterAll(() => python.close());
const tags = dialect.customTags([]) as any[];
const pieces = ['0','1','7','9','-','+','_',':','.','e','E','x','0x','b','0b','o','a','f','F','2026','-11-21','T','12:30:00',' ','Z','~','=','<<','inf','Inf','nan','NaN','NULL','yes','Yes','on','On','oN','n','y','true','TRUE','#','&','*','!','|','>','%','@','`','?',',','[',']','{','}','"',"'",'\\','\t','\n','\r\n','\u00a0','é','😀','\u2028','\u0085','\ufeff','\u0007','\ud800','\x7f'];
function mine(text: string) {
  const d = parseDocument(text, {...dialect} as any);
  if (d.errors.length) return undefined;
  const n: any = d.contents;
  if (n === null) return {kind:'null'};
  if (!isScalar(n)) return 'coll';
  const v: any = n.value;
  return v;
}
it('scalars', async () => {
  const out: any[] = [];
  const arb = fc.array(fc.constantFrom(...pieces), {maxLength: 6}).map(p=>p.join(''));
  for (const t of fc.sample(arb, 40000)) {
    const py: any = await python.read(t);
    let me: any; try { me = YamlDocument.parse(t).value } catch (e: any) { me = e.name === 'YamlError' ? undefined : e }
    if (me instanceof Error) { out.push(['CRASH', t, me.stack]); continue }
    const same = py === undefined ? true : me === undefined ? 'refused' : cmp(py, me);
    if (same !== true) out.push([same, t, py, typeof me === 'bigint' ? String(me) : me]);
  }
  writeFileSync('/tmp/explore.json', out.map(o=>JSON.stringify(o)).join('\n'));
}, 120000);
function cmp(py: any, me: any): boolean {
  switch (py.kind) {
    case 'null': return me === null;
    case 'bool': return me === (py.text === 'True');
    case 'int': return (typeof me === 'number' || typeof me === 'bigint') && String(me) === py.text;
    case 'float': return typeof me === 'number' && Object.is(me, Number(py.text.replace('inf','Infinity').replace('nan','NaN')));
    case 'str': return me === py.text;
    case 'date': case 'datetime': return typeof me === 'string';
    case 'list': return Array.isArray(me) && me.length === py.items.length && py.items.every((p: any,i: number)=>cmp(p,me[i]));
    case 'map': { const last = new Map(py.pairs.map((p: any)=>[p[0],p[2]])); return typeof me==='object' && me !== null && [...last].every(([n,p]: any)=>Object.hasOwn(me,n) && cmp(p,me[n])) && Object.keys(me).length === last.size; }
  }
  return false;
}
