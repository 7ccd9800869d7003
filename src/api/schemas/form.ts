import { z } from '@hono/zod-openapi'
import { email } from './verify.ts'

// Schemas of verifications for forms.

export const FormRequest = z.strictObject({ email }).openapi('FormRequest', { required: ['email'] })

export const FormResult = z
  .object({
    email: z.string().openapi({ description: 'The address, as sent.' }),
    class: z.enum(['deliverable', 'risky', 'undeliverable', 'unknown']),
    allow: z.boolean().openapi({
      description: 'Whether the form should accept the address: false if it is undeliverable.',
    }),
    did_you_mean: z.string().nullable().openapi({
      description: 'The address that was probably intended. Null if there is none.',
    }),
    message: z.string().openapi({ description: 'A sentence for the visitor.' }),
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('FormResult')

export const FORM_EXAMPLE = {
  email: 'ann@gmial.com',
  class: 'undeliverable' as const,
  allow: false,
  did_you_mean: 'ann@gmail.com',
  message: 'Did you mean ann@gmail.com?',
}
