import { z } from '@hono/zod-openapi'

/** A part of a query that takes names of those that are known, with commas between several; left out or empty: undefined. */
export const namesQuery = <Name extends string>(
  known: readonly Name[],
  o: { readonly description: string; readonly example: string },
) =>
  z
    .string()
    .optional()
    .transform((given, ctx) => namesOf(known, given, message => ctx.addIssue(message)))
    .openapi({
      type: 'string',
      description: `${o.description}: ${known.join(', ')}, commas between several.`,
      example: o.example,
    })

function namesOf<Name extends string>(
  known: readonly Name[],
  given: string | undefined,
  fault: (message: string) => void,
): Name[] | undefined {
  if (given === undefined || given.trim() === '') return undefined
  const names = given.split(',').map(name => name.trim())
  if (names.some(name => !known.some(one => one === name))) {
    fault(`must be of ${known.join(', ')}, with commas between several`)
  }
  return known.filter(one => names.includes(one))
}
