import { readResources } from './methods.mjs'

/** Returns the module with the generated methods of the TypeScript client. */
export function typescriptMethods(document) {
  const resources = readResources(document, 'typescript').map(writeResource)
  const text = resources.map(one => one.text).join('\n')
  const types = [...new Set(resources.flatMap(one => one.types))].sort()
  return `${BANNER}
import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
${types.map(type => `  ${type},`).join('\n')}
} from '../types.ts'
import { createRequests, type Listing } from './requests.ts'

${text}`
}

const BANNER = '// Made by tools/client-types.mjs from docs/openapi.json: do not edit.'

function writeResource({ name, title, methods }) {
  const written = methods.map(writeMethod)
  const names = written.flatMap(one => one.requests)
  const requests = [...new Set(names)].map(one => (one === 'delete' ? 'delete: remove' : one))
  return {
    types: written.flatMap(one => one.types),
    text: `/** ${title} */
export type ${name} = {
${written.map(({ doc, signature }) => `${comment(doc)}\n  ${signature}`).join('\n')}
}

export function create${name}(connection: Connection): ${name} {
  const { ${requests.join(', ')} } = createRequests(connection)
  return {
${written.map(({ code }) => `    ${code},`).join('\n')}
  }
}
`,
  }
}

function writeMethod(method) {
  const { name, summary, description, pathParameters, query, isPaged, isCreating, body } = method
  const { isQueryInOptions } = method
  const ids = pathParameters.map(({ words, isNumber }) => ({
    name: camelCase(words),
    type: isNumber ? 'number' : 'string',
  }))
  const types = []
  const parameters = ids.map(id => `${id.name}: ${id.type}`)
  if (body !== null) {
    types.push(body.type)
    parameters.push(`${body.name}${body.isRequired ? '' : '?'}: ${body.type}`)
  }
  const options = isCreating ? 'CreateOptions' : 'CallOptions'
  const queryType = `${method.id[0].toUpperCase()}${method.id.slice(1)}Query`
  const hasQuery = (isPaged || query.length > 0) && !isQueryInOptions
  if (hasQuery) {
    types.push(queryType)
    parameters.push(`query?: ${isPaged ? `Omit<${queryType}, 'cursor'>` : queryType}`)
  }
  parameters.push(`options?: ${options}${isQueryInOptions ? ` & ${optionFields(query)}` : ''}`)
  const answer = writeAnswer(method)
  const given = [...ids.map(id => id.name)]
  if (body !== null) given.push(body.isRequired ? body.name : `${body.name} = {}`)
  if (hasQuery) given.push('query')
  given.push(
    isQueryInOptions ? `{ ${query.map(one => one.name).join(', ')}, ...options } = {}` : 'options',
  )
  return {
    doc: [summary, description ?? ''].join(' ').trim(),
    types: [...types, ...answer.types],
    signature: `${name}(${parameters.join(', ')}): ${answer.returned}`,
    requests: [answer.request],
    code: `${name}: ${answer.isAsync ? 'async ' : ''}(${given.join(', ')}) => ${answer.code}`,
  }
}

/** Returns the type, the function of `createRequests` and the call for what a method returns. */
function writeAnswer(method) {
  const { http, answer, isPaged, isCreating, body, query, timeoutS, isQueryInOptions } = method
  const path = writePath(method)
  const names = query.map(one => one.name)
  if (answer === null) {
    const tail = isQueryInOptions ? `, { ${names.join(', ')} }` : ''
    return {
      types: [],
      returned: 'Promise<void>',
      request: 'delete',
      code: `remove(${path}, options${tail})`,
    }
  }
  const { type, kind, item, list } = answer
  if (isPaged) {
    return {
      types: [type, item],
      returned: `Listing<${item}>`,
      request: 'list',
      code: `list<${type}>(${path}, query, options)`,
    }
  }
  const request = [
    `method: '${http}'`,
    `path: ${path}`,
    ...(body === null ? [] : [body.name === 'body' ? 'body' : `body: ${body.name}`]),
    ...(names.length === 0 ? [] : [isQueryInOptions ? `query: { ${names.join(', ')} }` : 'query']),
    ...(isCreating ? ['creates: true'] : []),
    ...(timeoutS === undefined ? [] : [`timeoutMs: ${timeoutS}_000`]),
  ]
  const call = `{ ${request.join(', ')} }, options)`
  switch (kind) {
    case 'whole':
      return {
        types: [type],
        returned: `Promise<${type}>`,
        request: 'json',
        code: `json<${type}>(${call}`,
      }
    case 'data':
      return {
        types: [type, ...(item === null ? [] : [item])],
        returned: `Promise<${item ?? `${type}['data']`}>`,
        request: 'send',
        code: `send<${type}>(${call}`,
      }
    case 'list':
      return {
        types: [type, ...(item === null ? [] : [item])],
        returned: `Promise<${item === null ? `${type}['data']['${list}']` : `${item}[]`}>`,
        request: 'send',
        isAsync: true,
        code: `(await send<${type}>(${call}).${list}`,
      }
    default:
      throw new Error(`${method.id} returns ${kind}.`)
  }
}

/** Returns the path as a literal, with encoded IDs. */
function writePath({ path, pathParameters }) {
  if (pathParameters.length === 0) return `'${path}'`
  const filled = pathParameters.reduce((text, { name, words, isNumber }) => {
    const value = camelCase(words)
    return text.replace(`{${name}}`, `\${${isNumber ? value : `encodeId(${value})`}}`)
  }, path)
  return `\`${filled}\``
}

const optionFields = query =>
  `{ ${query
    .map(one => `/** ${one.description} */ readonly ${one.name}?: ${optionType(one)} | undefined`)
    .join('; ')} }`

/** A flag of a query is a boolean of the client. */
const optionType = ({ schema }) => (schema.enum?.includes('true') ? 'boolean' : 'string')

const camelCase = words =>
  words.map((word, n) => (n === 0 ? word : word[0].toUpperCase() + word.slice(1))).join('')

function comment(doc) {
  const lines = ['']
  for (const word of doc.split(' ')) {
    if (lines.at(-1).length + word.length > LINE_LENGTH_MAX) lines.push('')
    lines[lines.length - 1] += ` ${word}`
  }
  return lines.length === 1
    ? `  /**${lines[0]} */`
    : `  /**\n${lines.map(line => `   *${line}`).join('\n')}\n   */`
}

const LINE_LENGTH_MAX = 92
