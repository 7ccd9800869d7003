import { expect, test } from 'vitest'
import { createTestService } from '../../support/service.ts'

type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly maxLength?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

type Operation = {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}
type Parameter = { readonly $ref?: string; readonly name: string; readonly schema: Schema }

/** Values without a maximum of their own, with the reason. */
const BOUNDED_ELSEWHERE: readonly [path: RegExp, reason: string][] = [
  [
    /^POST \/v1\/verify\/(?:bulk|batch) emails\[\]$|^POST \/v1\/verify\/batch items\[\]\.email$/,
    'a longer text is a malformed row, of which 1,000 characters are kept; a body has no text beyond 1 MiB',
  ],
]

test('every text, list and record of a request has a maximum', async () => {
  const { request } = await createTestService()
  const document = (await (await request('/openapi.json')).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  }
  const resolve = <T extends { readonly $ref?: string }>(one: T): T => {
    if (one.$ref === undefined) return one
    const names = one.$ref.slice(2).split('/')
    return names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document) as T
  }
  const unlimited: string[] = []
  let checked = 0

  function check(given: Schema, path: string): void {
    const schema = resolve(given)
    checked += 1
    const types = [schema.type ?? []].flat()
    const isChoice = schema.enum !== undefined || schema.const !== undefined
    const isText = types.includes('string') && !isChoice && schema.format !== 'binary'
    if (isText && schema.maxLength === undefined) unlimited.push(path)
    if (types.includes('array') && schema.maxItems === undefined) unlimited.push(`${path} (array)`)
    const { additionalProperties: others } = schema
    if (typeof others === 'object') {
      if (schema.maxProperties === undefined) unlimited.push(`${path} (record)`)
      check(others, `${path}{}`)
    }
    if (schema.items !== undefined) check(schema.items, `${path}[]`)
    for (const [name, one] of Object.entries(schema.properties ?? {}))
      check(one, path.endsWith(' ') ? `${path}${name}` : `${path}.${name}`)
    for (const one of [schema.anyOf, schema.oneOf, schema.allOf].flatMap(all => all ?? []))
      check(one, path)
  }

  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { parameters = [], requestBody }] of Object.entries(operations)) {
      const target = `${method.toUpperCase()} ${path} `
      for (const one of parameters.map(resolve)) check(one.schema, `${target}?${one.name}`)
      for (const { schema } of Object.values(requestBody?.content ?? {})) check(schema, target)
    }
  }
  expect(checked).toBeGreaterThan(200)
  const unexplained = unlimited.filter(
    path => !BOUNDED_ELSEWHERE.some(([known]) => known.test(path)),
  )
  expect(unexplained).toEqual([])
  for (const [known] of BOUNDED_ELSEWHERE)
    expect(unlimited.some(path => known.test(path))).toBe(true)
})
