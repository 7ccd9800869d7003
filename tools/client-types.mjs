// Writes the types of the client, src/client/types.ts, from docs/openapi.json. The build runs it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from 'json-schema-to-typescript'

/** The types of every named schema, and of what single operations take and give. */
async function clientTypes(document) {
  const { Error: ErrorBody, ...named } = document.components.schemas
  const types = { ...named, ErrorBody, ...typesOfOperations(document) }
  const root = { type: 'object', properties: {}, definitions: types }
  const text = await compile(pointedAt(root), 'Nothing', {
    bannerComment: BANNER,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    unknownAny: true,
  })
  return withoutRoot(text)
}

/** `listJobs` brings ListJobsQuery, and ListJobsBody and ListJobsAnswer where these have no name of their own. */
function typesOfOperations({ paths }) {
  const ours = Object.entries(paths).filter(([path]) => path.startsWith('/v1/'))
  const operations = ours.flatMap(([, path]) => METHODS.map(method => path[method])).filter(Boolean)
  return Object.assign({}, ...operations.map(typesOfOperation))
}

function typesOfOperation({ operationId, summary, parameters = [], requestBody, responses }) {
  const name = operationId[0].toUpperCase() + operationId.slice(1)
  const answer = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const all = {
    [`${name}Query`]: querySchema(parameters),
    [`${name}Body`]: schemaOf(requestBody, 'application/json'),
    [`${name}Answer`]: schemaOf(answer, 'application/json'),
  }
  const own = Object.entries(all).filter(([, schema]) => schema && !schema.$ref)
  return Object.fromEntries(
    own.map(([key, schema]) => [key, { description: `Of: ${summary}`, ...schema }]),
  )
}

function querySchema(parameters) {
  const inQuery = parameters.filter(parameter => parameter.in === 'query')
  if (inQuery.length === 0) return null
  return {
    type: 'object',
    properties: Object.fromEntries(
      inQuery.map(({ name, schema, description }) => [name, { description, ...schema }]),
    ),
    required: inQuery.filter(({ required }) => required).map(({ name }) => name),
  }
}

const schemaOf = (place, type) => place?.content?.[type]?.schema

/** The same schema with its references to where JSON Schema has them. */
function pointedAt(value) {
  if (Array.isArray(value)) return value.map(pointedAt)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' ? placeOf(inner) : pointedAt(inner),
    ]),
  )
}

/** A type of our own named Error would hide that of JavaScript. */
const placeOf = reference =>
  reference.replace('#/components/schemas/', '#/definitions/').replace(/\/Error$/, '/ErrorBody')

/** The compiler adds comments about the root and about limits that a type does not have. */
const withoutRoot = text =>
  text
    .replace(/export interface Nothing \{\s*\}\n/, '')
    .replace(/^ *\* This (interface|type) was referenced by `Nothing`'s JSON-Schema\n.*\n/gm, '')
    .replace(/^ *\* @(min|max)Items \d+\n/gm, '')
    .replace(/(\n *\*)+(\n *\*\/)/g, '$2')
    .replace(/^ *\/\*\*\n *\*\/\n/gm, '')

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const BANNER = '// Made by tools/client-types.mjs from docs/openapi.json: do not edit.'
const ROOT = join(import.meta.dirname, '..')
const TYPES = join(ROOT, 'src/client/types.ts')

const document = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8'))
const text = await clientTypes(document)
// A file that stays the same keeps its time, so that dist/ is not built again.
if (!existsSync(TYPES) || readFileSync(TYPES, 'utf8') !== text) writeFileSync(TYPES, text)
