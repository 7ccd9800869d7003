// Makes the types of the client from the OpenAPI document of the service, so that neither can say what the other does not.
// Usage: node tools/client-types.mjs [--print]   A test fails when src/client/types.ts is not what this would write.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { compile } from 'json-schema-to-typescript'
import { createApp } from '../src/http/app.ts'
import { openapiDocument } from '../src/http/document/openapi.ts'

/** The document of a service that nobody asks: of its parts only the settings are looked at. */
function documentOfApi() {
  // Its data directory is cleared of what uploads left behind, so it must be nobody's.
  const dataDir = mkdtempSync(join(tmpdir(), 'ev-client-types-'))
  const settings = { version: '0', baseUrl: '', dataDir, plans: new Map(), trustProxy: [] }
  const service = { settings }
  const document = openapiDocument(service, createApp(service))
  rmSync(dataDir, { recursive: true })
  return document
}

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
    format: false,
  })
  return formatted(tidied(formatted(withoutRoot(text))))
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

/** The compiler speaks of the root, and of limits that are none of a type. */
const withoutRoot = text =>
  text
    .replace(/export interface Nothing \{\s*\}\n/, '')
    .replace(/^ \* This (interface|type) was referenced by `Nothing`'s JSON-Schema\n.*\n/gm, '')
    .replace(/^ \* @(min|max)Items \d+\n/gm, '')

/** Short comments on one line, none without words, and air between types. */
const tidied = text =>
  text
    .replace(/(\n *\*)+(\n *\*\/)/g, '$2')
    .replace(/^ *\/\*\*\n *\*\/\n/gm, '')
    .replace(/^( *)\/\*\*\n *\* (.*)\n *\*\//gm, '$1/** $2 */')
    .replace(/(?<!\*\/)\n(\/\*\*|export )/g, '\n\n$1')

function formatted(text) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [BIOME, 'format', '--stdin-file-path=src/client/types.ts'],
    { cwd: ROOT, input: text, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`The types cannot be formatted: ${stderr}`)
  return stdout
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const BANNER = '// Made by tools/client-types.mjs from the OpenAPI document: do not edit.'
const ROOT = join(import.meta.dirname, '..')
const BIOME = join(
  dirname(createRequire(import.meta.url).resolve('@biomejs/biome/package.json')),
  'bin/biome',
)

const text = await clientTypes(documentOfApi())
if (process.argv.includes('--print')) process.stdout.write(text)
else writeFileSync(join(ROOT, 'src/client/types.ts'), text)
