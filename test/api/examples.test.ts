import { describe, expect, test } from 'vitest'
import { completeExamples } from '../../src/api/examples.ts'

/** Returns the example of a response with this schema and example. */
function exampleOf(schema: object, example?: unknown): unknown {
  const media = { schema, ...(example === undefined ? {} : { example }) }
  const content = { 'application/json': media }
  completeExamples({
    paths: { '/v1/jobs': { get: { responses: { 200: { content } } } } },
    components: { schemas: SCHEMAS },
  })
  return (media as { example?: unknown }).example
}

const text = (example?: string) => ({
  type: 'string',
  ...(example === undefined ? {} : { example }),
})

const SCHEMAS = {
  Job: {
    type: 'object',
    properties: {
      success: { type: 'boolean', const: true },
      id: text('job_1'),
      note: text('only in some'),
      data: {
        type: 'object',
        properties: { at: text('10:30'), by: text('ann') },
        required: ['at'],
      },
      tags: { type: 'object', example: { customer: '42' }, additionalProperties: text() },
    },
    required: ['success', 'id', 'data', 'tags'],
  },
}
const JOB = { $ref: '#/components/schemas/Job' }
const WHOLE = { success: true, id: 'job_1', data: { at: '10:30' }, tags: { customer: '42' } }

describe('the example of a body', () => {
  test('has the examples of its required fields, in the order of the schema', () => {
    expect(JSON.stringify(exampleOf(JOB))).toBe(JSON.stringify(WHOLE))
  })

  test.each([
    [{ id: 'job_2' }, { ...WHOLE, id: 'job_2' }],
    [{ note: 'n' }, { ...WHOLE, note: 'n' }],
    [{ data: { by: 'bob' } }, { ...WHOLE, data: { at: '10:30', by: 'bob' } }],
    [{ data: null }, { ...WHOLE, data: null }],
    [{ tags: {} }, { ...WHOLE, tags: {} }],
    [{ other: 1 }, { ...WHOLE, other: 1 }],
  ])('has what was given in place of them: %j', (given, expected) => {
    expect(exampleOf(JOB, given)).toEqual(expected)
  })

  test('has one item in a list that is not given, and completes the items of one that is', () => {
    const list = { type: 'array', items: JOB }
    expect(exampleOf(list)).toEqual([WHOLE])
    expect(exampleOf(list, [{ id: 'job_2' }, {}])).toEqual([{ ...WHOLE, id: 'job_2' }, WHOLE])
    expect(exampleOf(list, [])).toEqual([])
  })

  test('comes from the first kind of a value that is not null, and from a described reference', () => {
    expect(exampleOf({ anyOf: [{ type: 'null' }, JOB] })).toEqual(WHOLE)
    expect(exampleOf({ allOf: [JOB, { description: 'The job.' }] })).toEqual(WHOLE)
  })

  test('has one kind of a body under each name', () => {
    const kinds = {
      anyOf: [JOB, { type: 'object', properties: { n: text('1') }, required: ['n'] }],
    }
    const examples = { job: { value: { id: 'job_2' } }, count: { value: {} } }
    const content = { 'application/json': { schema: kinds, examples } }
    completeExamples({
      paths: { '/v1/jobs': { post: { requestBody: { content } } } },
      components: { schemas: SCHEMAS },
    })
    expect(examples).toEqual({
      job: { value: { ...WHOLE, id: 'job_2' } },
      count: { value: { n: '1' } },
    })
  })

  test('is absent if no field has one', () => {
    expect(exampleOf(text())).toBeUndefined()
  })
})
