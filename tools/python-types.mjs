// Generates the types and the plain methods of the Python client from docs/openapi.json, into its folder
// or the given one.
// `npm run openapi` runs it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pythonMethods } from './clients/python.mjs'

/** Returns the Python module with a TypedDict for each object of the named schemas and each event. */
function pythonTypes({ components: { schemas }, webhooks }) {
  const module = { classes: new Map(), aliases: [], unions: [] }
  const named = Object.entries(schemas).filter(([name]) => !INTERNAL.has(name))
  for (const [name, schema] of named) declare(module, typeName(name), schema)
  declareEvents(module, webhooks)
  return `${[BANNER, ...module.aliases, ...module.classes.values(), ...module.unions].join('\n')}\n`
}

/** Declares the type of each webhook event, their union, and the literals of their names. */
function declareEvents(module, webhooks) {
  const kinds = Object.keys(webhooks)
  const names = kinds.map(kind => `${titleCase(kind)}Event`)
  for (const [index, kind] of kinds.entries()) {
    const { requestBody, summary } = webhooks[kind].post
    const { schema } = requestBody.content['application/json']
    declareClass(module, names[index], { ...schema, description: summary })
  }
  module.aliases.push('', `EventType = ${bracketed('Literal', kinds.map(literal))}`)
  module.unions.push('', '', `WebhookEvent = ${bracketed('Union', names)}`)
}

function declare(module, name, schema) {
  if (schema.oneOf) {
    const variants = schema.oneOf.map(one => typeOf(module, name + titleCase(variantOf(one)), one))
    module.unions.push('', '', `${name} = ${bracketed('Union', variants)}`)
  } else if (schema.allOf) declareSubclass(module, name, schema)
  else if (schema.properties) declareClass(module, name, schema)
  else module.aliases.push('', ...comment(schema, ''), `${name} = ${typeOf(module, name, schema)}`)
}

/** Declares a named schema that adds properties to another one. */
function declareSubclass(module, name, { allOf: [base, added] }) {
  const baseName = typeOf(module, name, base)
  // The base of a class is evaluated when the module is loaded.
  if (!module.classes.has(baseName)) throw new Error(`${name} is declared before ${baseName}.`)
  declareClass(module, name, added, baseName)
}

function declareClass(module, name, schema, superclass) {
  const { description, properties, required = [] } = schema
  if (module.classes.has(name)) throw new Error(`Two types have the name ${name}.`)
  // Reserves the place before the classes of the properties.
  module.classes.set(name, '')
  const fields = Object.entries(properties).map(([key, declared]) => {
    const schema = mergeAnnotations(declared)
    const type = typeOf(module, name + titleCase(key), schema)
    return { key, schema, type: required.includes(key) ? type : `NotRequired[${type}]` }
  })
  // A keyword cannot be declared in the class syntax.
  const keywords = fields.filter(({ key }) => KEYWORDS.has(key))
  const bases = [...(keywords.length === 0 ? [] : [`_${name}Keywords`]), superclass ?? []].flat()
  const pairs = keywords.map(
    ({ key, type }) => `${quote(key)}: ${quote(type.replaceAll('"', "'"))}`,
  )
  const lines = [
    ...(keywords.length === 0 ? [] : ['', '', typedDict(bases[0], pairs)]),
    ...['', '', `class ${name}(${bases.join(', ') || 'TypedDict'}):`],
    ...(description === undefined ? [] : [`    """${description}"""`, '']),
    ...fields
      .filter(({ key }) => !KEYWORDS.has(key))
      .flatMap(({ key, schema, type }) => [...comment(schema, '    '), `    ${key}: ${type}`]),
  ]
  module.classes.set(name, lines.join('\n'))
}

/** Returns a reference with the description that an `allOf` adds to it; other schemas as they are. */
const mergeAnnotations = schema =>
  schema.allOf?.slice(1).every(one => !one.type) ? Object.assign({}, ...schema.allOf) : schema

/** Returns the Python type of a schema; nested objects become classes with the given name. */
function typeOf(module, name, schema) {
  if (schema.$ref) return typeName(schema.$ref.split('/').at(-1))
  if (schema.anyOf) return union(schema.anyOf.map(one => typeOf(module, name, one)))
  if (schema.enum) {
    const values = schema.enum.filter(value => value !== null).map(literal)
    return union([bracketed('Literal', values), ...(schema.enum.includes(null) ? ['None'] : [])])
  }
  if (schema.allOf) throw new Error(`${name} has an allOf that this tool cannot convert.`)
  const types = [schema.type ?? 'any'].flat()
  return union(types.map(type => simpleType(module, name, type, schema)))
}

function simpleType(module, name, type, schema) {
  if (type === 'array') return `List[${typeOf(module, itemName(name), schema.items)}]`
  if (type !== 'object') return SIMPLE[type]
  if (schema.properties) {
    declareClass(module, name, schema)
    return name
  }
  const values = schema.additionalProperties
  return `Dict[str, ${values?.type ? typeOf(module, name, values) : 'Any'}]`
}

const union = types =>
  types.includes('None') && types.length === 2
    ? `Optional[${types.find(type => type !== 'None')}]`
    : types.length === 1
      ? types[0]
      : `Union[${types.join(', ')}]`

const literal = value =>
  typeof value === 'boolean'
    ? titleCase(String(value))
    : typeof value === 'string'
      ? quote(value)
      : value

const typedDict = (name, pairs) =>
  `${name} = TypedDict(\n    "${name}",\n    {${pairs.join(', ')}},\n)`

/** Long lists have one value per line. Brackets make the indentation irrelevant. */
function bracketed(name, values) {
  const line = `${name}[${values.join(', ')}]`
  return line.length <= 60
    ? line
    : `${name}[\n${values.map(one => `        ${one},\n`).join('')}    ]`
}

const itemName = name => (name.endsWith('s') ? name.slice(0, -1) : `${name}Item`)

/** Comment lines with the description of a field. */
function comment({ description }, indent) {
  if (description === undefined) return []
  const lines = ['']
  for (const word of description.split(/\s+/)) {
    if (lines.at(-1).length + word.length > 92 - indent.length) lines.push('')
    lines[lines.length - 1] += ` ${word}`
  }
  return lines.map(line => `${indent}#${line}`)
}

/** The fixed property of a variant of a union, such as `step` of VerifyStep. */
const variantOf = ({ properties }) =>
  Object.values(properties).find(({ enum: values }) => values?.length === 1).enum[0]

const titleCase = text =>
  text
    .split(/[._-]/)
    .map(word => word[0].toUpperCase() + word.slice(1))
    .join('')
const quote = text => JSON.stringify(text)
const typeName = name => (name === 'Error' ? 'ErrorBody' : name)

const SIMPLE = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
  any: 'Any',
}
/** Keywords of Python that are names of fields. */
const KEYWORDS = new Set(['async', 'class', 'from', 'global', 'import', 'is', 'not', 'pass'])
/** Schemas that no method of the client takes or returns. */
const INTERNAL = new Set([
  ...['BulkRequest', 'FileRequest', 'ScoredRequest', 'SingleRequest'],
  ...['Health', 'Ok', 'Problem', 'Ready', 'SimulatedError'],
])
const BANNER = `"""Types of requests and responses. Made by tools/python-types.mjs: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired`

const ROOT = join(import.meta.dirname, '..')
const folder = process.argv[2] ?? join(ROOT, 'clients/python/ev_client')
const document = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8'))
writeFileSync(join(folder, 'models.py'), pythonTypes(document))
writeFileSync(join(folder, 'resources.py'), pythonMethods(document))
