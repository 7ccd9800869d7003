import { z } from '@hono/zod-openapi'
import { describe, expect, test } from 'vitest'
import { validationError } from '../../../src/api/errors/fault.ts'
import { createTestService } from '../../support/service.ts'

/** The code and message for a value that violates a schema. */
function fault(schema: z.ZodType, value: unknown, target = 'json'): [string, string] {
  const { code, message } = validationError(
    target,
    schema.safeParse(value).error?.issues ?? [],
    value,
  )
  return [code, message]
}

const sentence = (schema: z.ZodType, value: unknown, target?: string) =>
  fault(schema, value, target)[1]

describe('a value that violates a schema', () => {
  test('is reported with its path, its value, and what is allowed', () => {
    const schema = z.object({ emails: z.array(z.string()) })
    expect(fault(schema, { emails: ['a', 7] })).toEqual([
      'invalid_request',
      '"emails[1]" is 7; it must be a string.',
    ])
    const items = z.object({ items: z.array(z.object({ email: z.string() })) })
    expect(sentence(items, { items: [{ email: 7 }] })).toBe(
      '"items[0].email" is 7; it must be a string.',
    )
    expect(sentence(schema, {})).toBe('"emails" is missing; it must be an array.')
    expect(sentence(schema, 7)).toBe('The body is 7; it must be an object.')
  })

  test.each<[z.ZodType, unknown, string]>([
    [z.boolean(), 'no', 'is "no"; it must be true or false, without quotes.'],
    [z.coerce.number(), 'x', 'is "x"; it must be a number.'],
    [z.int(), 1.5, 'is 1.5; it must be a whole number.'],
    [z.int().min(1), 0, 'is 0; it must be at least 1.'],
    [z.int().max(200), 1000, 'is 1000; it must be at most 200.'],
    [z.string().min(1), '', 'is ""; it must not be empty.'],
    [z.string().max(3), 'long', 'is "long"; it must have at most 3 characters.'],
    [z.array(z.string()).min(1), [], 'is []; it must not be empty.'],
    [z.array(z.int()).max(2), [1, 2, 3], 'is [1,2,3]; it must have at most 2 entries.'],
    [z.enum(['day', 'week']), 'year', 'is "year"; it must be one of day, week.'],
    [z.literal('results'), 'x', 'is "x"; it must be results.'],
    [
      z.iso.datetime(),
      'yesterday',
      'is "yesterday"; it must be a time such as 2026-03-21T10:30:00Z.',
    ],
  ])('%#: is described in a sentence', (schema, given, predicate) => {
    expect(sentence(z.object({ field: schema }), { field: given })).toBe(`"field" ${predicate}`)
  })

  test('of the query is reported as such', () => {
    const schema = z.object({ limit: z.coerce.number() })
    expect(sentence(schema, { limit: 'x' }, 'query')).toBe(
      '"limit" in the query is "x"; it must be a number.',
    )
  })

  test('has the message and the code of the schema', () => {
    const schema = z.array(z.string()).refine(list => list.length > 0, {
      error: 'is empty',
      params: { code: 'empty_list' },
    })
    expect(fault(schema, [])).toEqual(['empty_list', 'The body is empty.'])
    const demand = z.string().refine(() => false, { error: 'must be a domain' })
    expect(sentence(z.object({ site: demand }), { site: '//' })).toBe(
      '"site" is "//"; it must be a domain.',
    )
  })

  test('is sanitized and truncated', () => {
    expect(sentence(z.strictObject({}), { '\u001b[31m\n': 1 })).not.toMatch(/\p{Cc}/u)
    expect(sentence(z.int(), 'x'.repeat(10_000)).length).toBeLessThan(200)
  })

  test('is reported by the endpoints', async () => {
    const { json } = await createTestService()
    expect(await json('/v1/jobs?limit=1000')).toMatchObject({
      error: '"limit" in the query is "1000"; it must be at most 200.',
    })
    expect(await json('/v1/history?since=x')).toMatchObject({
      error: expect.stringMatching(/^"since" in the query is "x"; it must be a time such as /),
    })
    expect(await json('/v1/jobs/job_a/download?filter=good')).toMatchObject({
      error: expect.stringMatching(
        /^"filter" in the query is "good"; it must be one or more of deliverable, /,
      ),
    })
    expect(
      await json('/v1/webhooks', { body: { url: 'https://a.test', events: ['x'] } }),
    ).toMatchObject({
      error: expect.stringMatching(/^"events" has "x"; it takes batch.completed, .*\.$/),
    })
    expect(await json('/v1/keys', { body: { name: 'CI' } })).toMatchObject({
      error: '"scopes" is missing; it must be an array unless "publishable" is true.',
    })
  })
})
