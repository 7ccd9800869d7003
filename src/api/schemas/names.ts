import { z } from '@hono/zod-openapi'

/**
 * A query parameter with names of a known set, separated by commas; undefined if it is omitted or
 * empty.
 */
export const namesQuery = <Name extends string>(
  known: readonly Name[],
  o: { readonly description: string; readonly example: string },
) =>
  z
    .string()
    .optional()
    .transform((text, ctx) => parseNames(known, text, message => ctx.addIssue(message)))
    .openapi({
      type: 'string',
      description: `${o.description}, separated by commas: ${known.join(', ')}.`,
      example: o.example,
    })

function parseNames<Name extends string>(
  known: readonly Name[],
  text: string | undefined,
  addIssue: (message: string) => void,
): Name[] | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const names = text.split(',').map(name => name.trim())
  if (names.some(name => !known.some(one => one === name))) {
    addIssue(`must be one or more of ${known.join(', ')}, separated by commas`)
  }
  return known.filter(one => names.includes(one))
}
