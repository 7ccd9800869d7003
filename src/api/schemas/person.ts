import { z } from '@hono/zod-openapi'
import { NAME_LENGTH_MAX } from '../../accounts/name.ts'
import { ROLES } from '../../accounts/people/role.ts'
import { successBody } from './answers.ts'

// Schemas of people.

const time = z.string().openapi({ format: 'date-time' })

/** RFC 5321 §4.5.3.1.3. */
const EMAIL_LENGTH_MAX = 254

const name = z.string().trim().min(1).max(NAME_LENGTH_MAX).openapi({ description: 'Display name.' })

const role = z.enum(ROLES).openapi({
  description:
    '`admin`: everything in the account. `member`: verify, and manage lists, webhooks and feedback. `viewer`: read only.',
})

export const NewPersonRequest = z
  .strictObject({
    name,
    email: z.string().max(EMAIL_LENGTH_MAX).openapi({
      description: 'Email address, with which the person signs in. Case does not matter.',
    }),
    role,
  })
  .openapi('NewPerson')

export const PersonPatchRequest = z.strictObject({ name, role }).partial().openapi('PersonPatch')

const fields = {
  id: z.string(),
  name: z.string(),
  email: z.string(),
  role: z.enum(ROLES),
  joined: z.boolean().openapi({ description: 'Whether the person has accepted an invitation.' }),
  two_factor: z.boolean().openapi({
    description: 'Whether sign-in with the password asks for a second factor.',
  }),
  identity_provider: z.boolean().openapi({
    description: 'Whether the person signs in with the identity provider.',
  }),
  created_at: time,
  invitation_expires_at: time.nullable().openapi({
    description: 'When the open link expires. Null if there is none.',
  }),
  last_signed_in_at: time.nullable(),
}

const Person = z.object(fields).openapi('Person')

export const PersonAnswer = successBody(Person).openapi('PersonAnswer')

export const PersonList = successBody(
  z.object({ people: z.array(Person), total: z.int().min(0) }),
).openapi('PersonList')

export const PersonLink = successBody(
  z.object({
    ...fields,
    url: z.string().openapi({
      description:
        'Page where the person sets a password. Returned only once. It works once, for seven days.',
    }),
  }),
).openapi('PersonLink')

export const NEW_PERSON_EXAMPLE = {
  name: 'Ann Lee',
  email: 'ann@example.com',
  role: 'member' as const,
}

const PERSON = {
  id: 'per_01',
  ...NEW_PERSON_EXAMPLE,
  joined: false,
  two_factor: false,
  identity_provider: false,
  created_at: '2026-03-21T10:30:00.000Z',
  invitation_expires_at: '2026-03-28T10:30:00.000Z',
  last_signed_in_at: null,
}

export const PERSON_EXAMPLE = { success: true as const, data: PERSON }

export const PERSON_LIST_EXAMPLE = {
  success: true as const,
  data: { people: [PERSON], total: 1 },
}

export const PERSON_LINK_EXAMPLE = {
  success: true as const,
  data: { ...PERSON, url: 'https://api.example.com/invitation/4kq2…' },
}
