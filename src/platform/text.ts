/**
 * Makes untrusted text safe to show in a terminal, a log line, a CSV cell or JSON. Line breaks
 * become one space; other control, format and private-use characters and lone surrogates become
 * U+FFFD. Text longer than `lengthMax` UTF-16 units is truncated between characters.
 */
export function sanitizeText(text: string, lengthMax = 256): string {
  const clean = text
    .slice(0, lengthMax * 4)
    .replace(/[\r\n\t]+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, '\uFFFD')
    .trim()
  if (clean.length <= lengthMax) return clean
  return `${clean.slice(0, lengthMax - 1).replace(/\p{Cs}$/u, '')}…`
}

/** Makes a sentence of a clause: a capital letter at its start, a period at its end. */
export const toSentence = (clause: string): string =>
  clause.replace(/^./, first => first.toUpperCase()).replace(/[^.]$/, '$&.')

/** `Free plan`: the built-in plans have names, and the admin chooses those of the others. */
export const formatPlan = (plan: string): string =>
  `${sanitizeText(plan).replace(/^[a-z]/, first => first.toUpperCase())} plan`
