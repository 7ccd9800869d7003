import type { RouteConfig, z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { checkNames, joinPath, type Part } from '../errors/known-names.ts'

/**
 * Refuses query parameters and JSON fields that the schemas of a route do not name: a misspelled
 * option that is ignored would look accepted. Runs after the guard, which reads the body.
 */
export function refuseUnknown({
  request = {},
}: Pick<RouteConfig, 'request'>): MiddlewareHandler<Env> {
  const query = toShape(request.query as z.ZodType | undefined)
  const json = request.body?.content['application/json'] as { schema?: z.ZodType } | undefined
  const body = toShape(json?.schema)
  return async (c, next) => {
    const parameters = Object.keys(c.req.query()).map(name => withoutKey(name, query))
    checkWithin('query', Object.fromEntries(parameters.map(name => [name, null])), query)
    // Not set if there is no body, or if the handler reads it.
    if (c.get('body') !== undefined) checkWithin('body', await c.req.json(), body)
    await next()
  }
}

/** Returns the name of a record for a parameter of its form `name[key]`. */
function withoutKey(parameter: string, shape: Shape): string {
  const name = /^(\w+)\[.+\]$/.exec(parameter)?.[1]
  const isRecord =
    name !== undefined && shape?.kind === 'object' && shape.fields.get(name)?.kind === 'record'
  return isRecord ? name : parameter
}

/** The names that a value may have, also in nested values; null allows any. */
type Shape =
  | { readonly kind: 'object'; readonly fields: ReadonlyMap<string, Shape> }
  | { readonly kind: 'array'; readonly items: Shape }
  | { readonly kind: 'record' }
  | null

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

/** A part without a schema allows no names. */
function toShape(schema: z.ZodType | undefined): Shape {
  if (schema === undefined) return { kind: 'object', fields: new Map() }
  const { type, shape, element, innerType, in: input } = schema.def as SchemaDef
  if (type === 'object' && shape !== undefined) {
    const fields = Object.entries(shape).map(([name, one]) => [name, toShape(one)] as const)
    return { kind: 'object', fields: new Map(fields) }
  }
  if (type === 'record') return { kind: 'record' }
  if (type === 'array') return { kind: 'array', items: toShape(element) }
  const inner = innerType ?? input
  return inner === undefined ? null : toShape(inner)
}

/** The schema checks values of other types. */
function checkWithin(part: Part, value: unknown, shape: Shape, path = ''): void {
  if (shape === null || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    // A list of addresses has no names to check, and may be long.
    if (shape.kind !== 'array' || shape.items === null) return
    for (const [index, one] of value.entries()) {
      checkWithin(part, one, shape.items, `${path}[${index}]`)
    }
  } else if (shape.kind === 'object') {
    checkNames(part, Object.keys(value), [...shape.fields.keys()], path)
    for (const [name, field] of shape.fields) {
      checkWithin(part, value[name as keyof typeof value], field, joinPath(path, name))
    }
  }
}
