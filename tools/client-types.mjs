// Generates the types and the plain methods of the client, src/client/types.ts and
// src/client/resources/methods.ts, from docs/openapi.json. The build runs it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from 'json-schema-to-typescript'
import { typescriptMethods } from './clients/typescript.mjs'

/** Returns the types of all named schemas and of the inputs and outputs of operations. */
async function clientTypes(document) {
  const { Error: ErrorBody, ...named } = document.components.schemas
  const types = {
    ...named,
    ErrorBody,
    EventData: eventTypes(document),
    ...operationTypes(document),
  }
  const root = { type: 'object', properties: {}, definitions: types }
  const text = await compile(withLocalRefs(root), 'Nothing', {
    bannerComment: BANNER,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    unknownAny: true,
  })
  return withoutRoot(text)
}

/** Returns the type of the data of each webhook event. */
function eventTypes({ webhooks }) {
  const properties = Object.fromEntries(
    Object.entries(webhooks).map(([kind, { post }]) => {
      const { data } = getSchema(post.requestBody, 'application/json').properties
      return [kind, { description: post.summary, ...data }]
    }),
  )
  const description = 'Data of each type of webhook event.'
  return { type: 'object', description, properties, required: Object.keys(properties) }
}

/**
 * Returns the types of operations: `listJobs` yields ListJobsQuery, and ListJobsBody and
 * ListJobsAnswer unless these are named schemas.
 */
function operationTypes({ paths }) {
  const versioned = Object.entries(paths).filter(([path]) => path.startsWith('/v1/'))
  const operations = versioned
    .flatMap(([, path]) => METHODS.map(method => path[method]))
    .filter(Boolean)
  return Object.assign({}, ...operations.map(typesForOperation))
}

function typesForOperation({ operationId, summary, parameters = [], requestBody, responses }) {
  const name = operationId[0].toUpperCase() + operationId.slice(1)
  const answer = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const all = {
    [`${name}Query`]: querySchema(parameters),
    [`${name}Body`]: getSchema(requestBody, 'application/json'),
    [`${name}Answer`]: getSchema(answer, 'application/json'),
  }
  const unnamed = Object.entries(all).filter(([, schema]) => schema && !schema.$ref)
  return Object.fromEntries(
    unnamed.map(([key, schema]) => [key, { description: `Of: ${summary}`, ...schema }]),
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

const getSchema = (message, type) => message?.content?.[type]?.schema

/** Rewrites OpenAPI references to JSON Schema definitions. */
function withLocalRefs(value) {
  if (Array.isArray(value)) return value.map(withLocalRefs)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' ? toLocalRef(inner) : withLocalRefs(inner),
    ]),
  )
}

/** A type named Error would shadow the built-in one. */
const toLocalRef = reference =>
  reference.replace('#/components/schemas/', '#/definitions/').replace(/\/Error$/, '/ErrorBody')

/** Removes the root type and comments about it and about limits that the types do not express. */
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

const document = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8'))
writeChanged('src/client/types.ts', await clientTypes(document))
writeChanged('src/client/resources/methods.ts', typescriptMethods(document))

/** An unchanged file keeps its modification time, so that dist/ is not rebuilt. */
function writeChanged(name, text) {
  const file = join(ROOT, name)
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
}
