/** The services whose columns and words ev writes. */
export const VOCABULARIES = ['zerobounce', 'neverbounce', 'kickbox', 'reacher'] as const

export type Vocabulary = (typeof VOCABULARIES)[number]
