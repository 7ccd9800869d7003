import { readResources } from './methods.mjs'

/** Returns the module with the generated methods of the Python client. */
export function pythonMethods(document) {
  const names = enumNames(document)
  const classes = readResources(document, 'python').map(resource => writeClass(resource, names))
  const text = classes.join('')
  const code = text.replaceAll(/"""[^"]*(?:"(?!"")[^"]*)*"""/g, '')
  const used = name => new RegExp(`\\b${name}\\b`).test(code)
  const typing = TYPING.filter(used)
  const models = modelNames(document).filter(used).sort()
  return `"""Plain methods of the client. Made by tools/python-types.mjs: do not edit."""

from __future__ import annotations

from typing import ${typing.join(', ')}

from .connection import Call, Connection
from .models import (
${models.map(name => `    ${name},\n`).join('')})
from .pagination import Listing
from .paths import encode
from .verify import to_body
${text}`
}

const TYPING = ['Any', 'List', 'Literal', 'Mapping', 'Optional', 'Sequence', 'Union', 'cast']

/** The names of schemas and event types by their values, as JSON. */
function enumNames({ components: { schemas }, webhooks }) {
  const named = Object.entries(schemas).filter(([, schema]) => schema.enum !== undefined)
  return new Map([
    ...named.map(([name, schema]) => [JSON.stringify(schema.enum), name]),
    [JSON.stringify(Object.keys(webhooks)), 'EventType'],
  ])
}

/** All names that a method may return or take, with those of nested objects. */
function modelNames({ components: { schemas } }) {
  const names = Object.keys(schemas).flatMap(name => [name, `${name}Data`])
  return [...new Set([...names, 'EventListDataEvent', 'EventType'])]
}

const writeClass = ({ name, title, methods }, names) => `

class ${name}:
    """${toDocText(title)}"""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

${methods.map(method => writeMethod(method, names)).join('\n\n')}
`

function writeMethod(method, names) {
  const { pathParameters, query, body, isCreating, isPaged, isFlat, open = [] } = method
  const ids = pathParameters.map(({ words, isNumber }) => ({
    name: words.join('_'),
    type: isNumber ? 'int' : 'str',
  }))
  const isWhole = body?.isRequired === true && !isFlat
  const fields = body === null || isWhole ? [] : fieldsOf(body.schema, names)
  const filters = query.map(({ name, schema, description }) => ({
    name,
    type: open.includes(name) ? 'str' : typeOf(schema, names),
    description,
  }))
  const keywords = [...fields, ...filters]
  const parameters = [
    'self',
    ...ids.map(({ name, type }) => `${name}: ${type}`),
    ...(isWhole ? [`${body.name}: ${body.type}`] : []),
    ...(keywords.length > 0 || isCreating ? ['*'] : []),
    ...keywords.map(({ name, type, isRequired }) =>
      isRequired ? `${name}: ${type}` : `${name}: Optional[${type}] = None`,
    ),
    ...(isCreating ? ['idempotency_key: Optional[str] = None'] : []),
  ]
  const returned = returnType(method)
  const call = {
    ...method,
    path: writePath(method),
    query: filters.map(({ name }) => name),
    body: isWhole ? body.name : null,
    fields: body === null || isWhole ? null : fields.map(toField),
  }
  return [
    signature(toSnakeCase(method.name), parameters, returned.annotation),
    docString(method, keywords),
    isPaged ? pagedCode(call) : plainCode(call, returned),
  ].join('\n')
}

const fieldsOf = ({ properties, required = [] }, names) =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    type: typeOf(schema, names),
    description: schema.description,
    isRequired: required.includes(name),
    isList: schema.type === 'array',
  }))

/** A list may be given as any sequence, which JSON does not have. */
const toField = ({ name, isList }) =>
  isList ? `${name}=None if ${name} is None else list(${name})` : `${name}=${name}`

/** Returns the type of an argument. */
function typeOf(schema, names) {
  if (schema.$ref) return schema.$ref.split('/').at(-1)
  if (schema.anyOf) return `Union[${schema.anyOf.map(one => typeOf(one, names)).join(', ')}]`
  if (schema.enum) {
    if (schema.enum.every(value => FLAGS.has(value))) return 'bool'
    return names.get(JSON.stringify(schema.enum)) ?? `Literal[${schema.enum.map(quote).join(', ')}]`
  }
  if (schema.type === 'array') return `Sequence[${typeOf(schema.items, names)}]`
  if (SIMPLE[schema.type]) return SIMPLE[schema.type]
  throw new Error(`No Python type for ${JSON.stringify(schema)}.`)
}

/** Texts of a query that are a boolean of the client. */
const FLAGS = new Set(['true', 'false', '1', '0'])
const SIMPLE = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  object: 'Mapping[str, str]',
}

/** Returns the annotation, the type to cast to, and what to read of the response. */
function returnType({ answer, isPaged }) {
  if (answer === null) return { annotation: 'None' }
  const { type, kind, item, list } = answer
  if (isPaged) return { annotation: `Listing[${item}]` }
  if (kind === 'whole') return { annotation: type, cast: type, read: '' }
  if (kind === 'data') {
    const name = item ?? `${type}Data`
    return { annotation: name, cast: name, read: '["data"]' }
  }
  const one = item ?? `${type}Data${titleCase(list).replace(/s$/, '')}`
  return { annotation: `List[${one}]`, cast: `"List[${one}]"`, read: `["data"][${quote(list)}]` }
}

function writePath({ path, pathParameters }) {
  if (pathParameters.length === 0) return quote(path)
  const filled = pathParameters.reduce((text, { name, words, isNumber }) => {
    const value = words.join('_')
    return text.replace(`{${name}}`, `{${isNumber ? value : `encode(${value})`}}`)
  }, path)
  return `f${quote(filled)}`
}

const plainCode = (method, returned) => {
  const json = 'self._connection.json(call)'
  return [
    `        call = ${writeCall(method, '        ')}`,
    returned.cast === undefined
      ? `        ${json}`
      : `        return cast(${returned.cast}, ${json}${returned.read})`,
  ].join('\n')
}

const pagedCode = method => `
        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = ${writeCall({ ...method, query: [...method.query, 'cursor'] }, '            ')}
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)`

function writeCall({ http, path, query, body, fields, isCreating, timeoutS }, indent) {
  const pairs = query.map(name => `${quote(name)}: ${name}`)
  const given = [
    quote(http),
    path,
    ...(query.length === 0 ? [] : [joinArguments(`${indent}    `, '{', pairs, '}')]),
    ...(body === null ? [] : [`body=${body}`]),
    ...(fields === null ? [] : [joinArguments(`${indent}    `, 'body=to_body(', fields, ')')]),
    ...(isCreating ? ['creates=True', 'idempotency_key=idempotency_key'] : []),
    ...(timeoutS === undefined ? [] : [`timeout=${timeoutS}.0`]),
  ]
  return joinArguments(indent, 'Call(', given, ')')
}

const signature = (name, parameters, returned) =>
  `    def ${name}${joinArguments('    ', '(', parameters, `) -> ${returned}:`, name.length + 4)}`

/** Joins arguments on one line, or writes each on its own. */
function joinArguments(indent, start, parts, end, before = 7) {
  const line = `${start}${parts.join(', ')}${end}`
  if (indent.length + before + line.length <= LINE_LENGTH_MAX) return line
  return `${start}\n${parts.map(part => `${indent}    ${part},\n`).join('')}${indent}${end}`
}

function docString({ summary, description }, keywords) {
  const described = keywords.filter(keyword => keyword.description !== undefined)
  const about = description === null ? [] : ['', ...wrap(toDocText(description), '        ')]
  const args = described.flatMap(keyword =>
    wrap(`${keyword.name}: ${toDocText(keyword.description)}`, '            ').map((line, n) =>
      n === 0 ? line : `    ${line}`,
    ),
  )
  const rest = [...about, ...(args.length === 0 ? [] : ['', '        Args:', ...args])]
  const first = wrap(`"""${toDocText(summary)}`, '        ').join('\n')
  return rest.length === 0 ? `${first}"""` : [first, ...rest, '        """'].join('\n')
}

/** Code of Markdown in the form of reStructuredText. */
const toDocText = text => text.replaceAll('`', '``').replaceAll('\\', '\\\\')

function wrap(text, indent) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === '') lines[lines.length - 1] = word
    else if (indent.length + line.length + 1 + word.length > LINE_LENGTH_MAX - 4) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines.map(line => `${indent}${line}`)
}

const LINE_LENGTH_MAX = 100

const quote = text => JSON.stringify(text)
const toSnakeCase = text => text.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
const titleCase = text => text[0].toUpperCase() + text.slice(1)
