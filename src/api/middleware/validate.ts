import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Env } from '../context.ts'
import { formatPath, validationError } from '../errors/fault.ts'
import { checkNames, type Part } from '../errors/known-names.ts'

/** Schemas of the parts of a request. A query without a schema takes no parameters. */
export type RequestSchemas = {
  readonly params?: z.ZodObject | undefined
  readonly query?: z.ZodObject | undefined
  /** Schema of a JSON body. Its objects are strict, so that they refuse unknown fields. */
  readonly body?: z.ZodType | undefined
}

/**
 * Returns a function that validates the parts of a request for `c.req.valid`. Throws ApiError for
 * the first fault; an unknown name comes first, because a misspelled option that is ignored would
 * look accepted.
 */
export function createValidator({ params, query, body }: RequestSchemas) {
  // Created at the first request: zod compiles a schema when it parses first, and for all routes
  // that took a third of the time in which the service is created.
  let read: QueryReader | undefined
  return (c: Context<Env>): void => {
    const { req } = c
    read ??= createQueryReader(query ?? z.object({}))
    req.addValidatedData('query', read(c))
    if (params !== undefined) req.addValidatedData('param', parse('param', params, req.param()))
    if (body !== undefined) req.addValidatedData('json', parse('json', body, readBody(c)))
  }
}

type QueryReader = (c: Context<Env>) => object

function createQueryReader(schema: z.ZodObject): QueryReader {
  const query: z.ZodObject = schema.strict()
  const records = Object.keys(query.shape).filter(
    name => unwrap(query.shape[name]).type === 'record',
  )
  // The result for a request without a query, which most requests are.
  const withoutQuery = query.safeParse({}).data
  return ({ req }) => {
    const known = req.url.includes('?') ? undefined : withoutQuery
    return known ?? parse('query', query, readQuery(req.queries(), records))
  }
}

/** A missing body counts as an empty object. */
const readBody = (c: Context<Env>) => (c.get('body') === undefined ? {} : c.get('json'))

/** The part of a request that unknown names of a target belong to. */
const PARTS: Readonly<Record<string, Part>> = { query: 'query', json: 'body' }

function parse(target: 'query' | 'param' | 'json', schema: z.ZodType, input: unknown): object {
  const { success, data, error } = schema.safeParse(input)
  if (success) return data as object
  const part = PARTS[target]
  const unknown = error.issues.find(({ code }) => code === 'unrecognized_keys')
  if (part !== undefined && unknown?.code === 'unrecognized_keys') {
    checkNames(part, unknown.keys, getNames(schema, unknown.path), formatPath(unknown.path))
  }
  throw validationError(target, error.issues, input)
}

/**
 * Returns the value of each parameter, or its values if it is repeated. Parameters of the form
 * `name[key]` are the entries of a record.
 */
function readQuery(
  queries: Readonly<Record<string, readonly string[]>>,
  records: readonly string[],
): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const [parameter, values] of Object.entries(queries)) {
    const value = values.length === 1 ? values[0] : values
    const [, name = '', key = ''] = ENTRY.exec(parameter) ?? []
    if (!records.includes(name)) query[parameter] = value
    else query[name] = { ...(query[name] as object | undefined), [key]: value }
  }
  return query
}

const ENTRY = /^(\w+)\[(.+)\]$/

/**
 * The definition of a zod schema: `optional` and `nullable` have an `innerType`, a transform has
 * its input in `in`.
 */
type SchemaDef = {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly element?: z.ZodType
  readonly innerType?: z.ZodType
  readonly in?: z.ZodType
}

function unwrap(schema: z.ZodType | undefined): SchemaDef {
  const def = (schema ?? z.unknown()).def as SchemaDef
  const inner = def.innerType ?? def.in
  return inner === undefined ? def : unwrap(inner)
}

/** Returns the names that an object takes, which is at a path of a schema. */
function getNames(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let def = unwrap(schema)
  for (const key of path)
    def = unwrap(typeof key === 'number' ? def.element : def.shape?.[String(key)])
  return Object.keys(def.shape ?? {})
}
