import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { createTestService } from '../support/service.ts'

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const { request } = await createTestService()
    const document = await (await request('/openapi.json', { key: null })).json()
    expect(await new Validator().validate(document as Record<string, unknown>)).toMatchObject({
      valid: true,
    })
    expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url: 'https://ev.test' }] })
  })
})
