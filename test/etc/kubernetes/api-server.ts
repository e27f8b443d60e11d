/**
 * How the API server judges a custom resource by its schema.
 * Source: Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", and its validation of schemas: kube-openapi.
 */
import { Ajv } from 'ajv';
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';

/** Whether the API server accepts a value. Unknown fields are refused, as by the webhook for policies. */
export function validatorOf(structural: Mapping): (value: unknown) => boolean {
  const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false });
  const validate = ajv.compile(forAjv(structural));
  return (value) => validate(value);
}

/** The API server first drops null fields that must not be null. */
export function asStored(value: unknown, structural: unknown): unknown {
  if (!isMapping(structural)) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((item) => asStored(item, structural.items));
  }
  if (!isMapping(value)) {
    return value;
  }
  const { properties, additionalProperties } = structural;
  const schemaOf = (name: string) => (isMapping(properties) ? properties[name] : additionalProperties);
  const isKept = (name: string, one: unknown) => {
    const schema = schemaOf(name);
    return one !== null || !isMapping(schema) || schema.nullable === true;
  };
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, one]) => isKept(name, one))
      .map(([name, one]) => [name, asStored(one, schemaOf(name))]),
  );
}

/** For null the API server checks only the type, and ignores even `not`. */
function forAjv({ nullable, ...structural }: Mapping): Mapping {
  const { type, properties, additionalProperties, items, not } = structural;
  const isClosed = type === 'object' && additionalProperties === undefined;
  const known = Object.entries(structural).filter(([keyword]) => !keyword.startsWith('x-kubernetes-'));
  const translated = {
    ...Object.fromEntries(known),
    ...(isClosed ? { additionalProperties: false } : {}),
    ...(isMapping(additionalProperties) ? { additionalProperties: forAjv(additionalProperties) } : {}),
    ...(isMapping(items) ? { items: forAjv(items) } : {}),
    ...(isMapping(properties) ? { properties: mapped(properties) } : {}),
    ...(isMapping(not) ? notForAjv(not) : {}),
    ...Object.fromEntries(
      ['allOf', 'anyOf', 'oneOf'].flatMap((name) => {
        const list = structural[name];
        return Array.isArray(list) ? [[name, list.map(forAjv)]] : [];
      }),
    ),
  };
  return nullable === true || type === undefined ? { anyOf: [{ type: 'null' }, translated] } : translated;
}

function mapped(properties: Mapping): Mapping {
  return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, forAjv(one as Mapping)]));
}

/** For ajv 8 an object always has the empty name. */
function notForAjv(not: Mapping): Mapping {
  return JSON.stringify(not) === '{"required":[""]}'
    ? { not: { type: 'object', not: { propertyNames: { minLength: 1 } } } }
    : { not: forAjv(not) };
}
