import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document, Schema } from './document.ts'

/** Says what is wrong with a value; null: nothing. */
export type Check = (value: unknown) => string | null

/** Checks of values by the schemas of a document. Each schema is compiled once. */
export function schemaChecks({ components }: Document): {
  /** Of what is sent: the schemas themselves say that they take no other field. */
  request(schema: Schema): Check
  /** Of what is answered: a field that the schema does not name is a fault. */
  answer(schema: Schema): Check
} {
  const schemas = Object.entries(components.schemas)
  const open = once(() => newAjv(schemas))
  const closed = once(() => newAjv(schemas.map(([name, schema]) => [name, closeWithin(schema)])))
  return {
    request: remembered(schema => open().compile(atHome(schema))),
    answer: remembered(schema => closed().compile(atHome(close(schema)))),
  }
}

/** Calls `make` when it is first needed. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

const HOME = 'https://ev.test/openapi.json'

function newAjv(schemas: readonly [name: string, schema: Schema][]): Ajv2020 {
  // Whether the schemas are schemas is tested with the document: here it would take most of the time.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })
  addFormats.default(ajv)
  ajv.addSchema({ $id: HOME, components: { schemas: Object.fromEntries(schemas) } })
  return ajv
}

function remembered(compile: (schema: Schema) => ValidateFunction): (schema: Schema) => Check {
  const checks = new Map<Schema, Check>()
  return schema => {
    const known = checks.get(schema)
    if (known !== undefined) return known
    const validate = compile(schema)
    const check: Check = value => (validate(value) ? null : faultsOf(validate))
    checks.set(schema, check)
    return check
  }
}

const faultsOf = ({ errors }: ValidateFunction): string =>
  (errors ?? [])
    .map(({ instancePath, message = '', params }) => `${instancePath} ${message} ${told(params)}`)
    .join('\n')

const told = (params: object) => JSON.stringify(params)

/** References of a schema point into the document. */
const atHome = (schema: Schema): AnySchemaObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', `"${HOME}#/components/`))

/** The schema, without room for anything that it does not name, here and in all it holds. */
function close(schema: Schema): Schema {
  const isOpen = 'additionalProperties' in schema
  return { ...closeWithin(schema), ...(isOpen ? {} : { unevaluatedProperties: false }) }
}

/** Closes what stands within a schema, not itself: it may be a part of another (`allOf`). */
function closeWithin(schema: Schema): Schema {
  const closed: Record<string, unknown> = { ...schema }
  for (const list of ['allOf', 'anyOf', 'oneOf']) {
    if (list in schema) closed[list] = (schema[list] as Schema[]).map(closeWithin)
  }
  if (schema.items !== undefined) closed.items = close(schema.items as Schema)
  if (schema.properties !== undefined) {
    const properties = Object.entries(schema.properties as Record<string, Schema>)
    closed.properties = Object.fromEntries(properties.map(([name, one]) => [name, close(one)]))
  }
  return closed
}
