import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document, Schema } from './document.ts'

/** Returns the error of a value, or null if it is valid. */
export type Check = (value: unknown) => string | null

/** Validators for the schemas of a document. Each schema is compiled once. */
export function schemaChecks({ components }: Document): {
  /** For requests: the schemas themselves refuse other fields. */
  request(schema: Schema): Check
  /** For responses: a field that the schema does not name is an error. */
  answer(schema: Schema): Check
} {
  const schemas = Object.entries(components.schemas)
  const open = lazily(() => newAjv(schemas))
  const closed = lazily(() => newAjv(schemas.map(([name, schema]) => [name, closeNested(schema)])))
  return {
    request: memoize(schema => open().compile(withAbsoluteRefs(schema))),
    answer: memoize(schema => closed().compile(withAbsoluteRefs(close(schema)))),
  }
}

/** Calls `make` on first use. */
function lazily<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

const DOCUMENT_ID = 'https://ev.test/openapi.json'

function newAjv(schemas: readonly [name: string, schema: Schema][]): Ajv2020 {
  // The document test validates the schemas themselves: here it would take most of the time. Code
  // that is not optimized and inlined is compiled in half of the time.
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
  })
  addFormats.default(ajv)
  ajv.addSchema({ $id: DOCUMENT_ID, components: { schemas: Object.fromEntries(schemas) } })
  return ajv
}

function memoize(compile: (schema: Schema) => ValidateFunction): (schema: Schema) => Check {
  const checks = new Map<Schema, Check>()
  /** Most operations have copies of the same headers and errors, and compiling takes long. */
  const byText = new Map<string, Check>()
  return schema => {
    const known = checks.get(schema)
    if (known !== undefined) return known
    const text = JSON.stringify(schema)
    const check = byText.get(text) ?? toCheck(compile(schema))
    byText.set(text, check)
    checks.set(schema, check)
    return check
  }
}

const toCheck =
  (validate: ValidateFunction): Check =>
  value =>
    validate(value) ? null : faultsOf(validate)

const faultsOf = ({ errors }: ValidateFunction): string =>
  (errors ?? [])
    .map(
      ({ instancePath, message = '', params }) => `${instancePath} ${message} ${reported(params)}`,
    )
    .join('\n')

const reported = (params: object) => JSON.stringify(params)

/** References of a schema point into the document. */
const withAbsoluteRefs = (schema: Schema): AnySchemaObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', `"${DOCUMENT_ID}#/components/`))

/** The schema with additional properties forbidden at all levels. */
function close(schema: Schema): Schema {
  const isOpen = 'additionalProperties' in schema
  return { ...closeNested(schema), ...(isOpen ? {} : { unevaluatedProperties: false }) }
}

/**
 * Forbids additional properties within a schema, but not in itself: it may be a part of another one
 * (`allOf`).
 */
function closeNested(schema: Schema): Schema {
  const closed: Record<string, unknown> = { ...schema }
  for (const list of ['allOf', 'anyOf', 'oneOf']) {
    if (list in schema) closed[list] = (schema[list] as Schema[]).map(closeNested)
  }
  if (schema.items !== undefined) closed.items = close(schema.items as Schema)
  if (schema.properties !== undefined) {
    const properties = Object.entries(schema.properties as Record<string, Schema>)
    closed.properties = Object.fromEntries(properties.map(([name, one]) => [name, close(one)]))
  }
  return closed
}
