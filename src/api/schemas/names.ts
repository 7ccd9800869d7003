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

/** A query parameter with a time or a day (UTC), as epoch ms; undefined if it is omitted. */
export const timeFilter = (description: string) =>
  z
    .union([z.iso.datetime({ offset: true }), z.iso.date()], {
      error: 'must be a time such as 2026-03-21T10:30:00Z, or a day such as 2026-03-21',
    })
    .transform(text => Date.parse(text))
    .optional()
    .openapi({ type: 'string', description, example: '2026-03-21T00:00:00Z' })
