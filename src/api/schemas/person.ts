import { z } from '@hono/zod-openapi'
import { NAME_LENGTH_MAX } from '../../accounts/name.ts'
import { ROLES } from '../../accounts/people/role.ts'
import { successBody } from './answers.ts'
import { time, total } from './fields.ts'

// Schemas of people.

/** RFC 5321 §4.5.3.1.3. */
const EMAIL_LENGTH_MAX = 254

const name = z
  .string()
  .trim()
  .min(1)
  .max(NAME_LENGTH_MAX)
  .openapi({ description: 'Display name.', example: 'Ann Lee' })

const role = z.enum(ROLES).openapi({
  description:
    '`admin`: everything in the account. `member`: verify, and manage lists, webhooks and feedback. `viewer`: read only.',
  example: 'member',
})

export const NewPersonRequest = z
  .strictObject({
    name,
    email: z.string().max(EMAIL_LENGTH_MAX).openapi({
      description: 'Email address, with which the person signs in. Case does not matter.',
      example: 'ann@example.com',
    }),
    role,
  })
  .openapi('NewPerson')

export const PersonPatchRequest = z.strictObject({ name, role }).partial().openapi('PersonPatch')

const fields = {
  id: z.string().openapi({ example: 'per_01' }),
  name: z.string().openapi({ example: 'Ann Lee' }),
  email: z.string().openapi({ example: 'ann@example.com' }),
  role: z.enum(ROLES).openapi({ example: 'member' }),
  joined: z.boolean().openapi({
    description: 'Whether the person has accepted an invitation.',
    example: false,
  }),
  two_factor: z.boolean().openapi({
    description: 'Whether sign-in with the password asks for a second factor.',
    example: false,
  }),
  identity_provider: z.boolean().openapi({
    description: 'Whether the person signs in with the identity provider.',
    example: false,
  }),
  created_at: time,
  invitation_expires_at: time.nullable().openapi({
    description: 'When the open link expires. Null if there is none.',
    example: '2026-03-28T10:30:00.000Z',
  }),
  last_signed_in_at: time.nullable().openapi({ example: null }),
}

const Person = z.object(fields).openapi('Person')

export const PersonAnswer = successBody(Person).openapi('PersonAnswer')

export const PersonList = successBody(z.object({ people: z.array(Person), total })).openapi(
  'PersonList',
)

export const PersonLink = successBody(
  z.object({
    ...fields,
    url: z.string().openapi({
      description:
        'Page where the person sets a password. Returned only once. It works once, for seven days.',
      example: 'https://api.example.com/invitation/4kq2…',
    }),
  }),
).openapi('PersonLink')
