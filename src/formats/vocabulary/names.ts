/** The services whose columns and words ev writes. */
export const VOCABULARIES = ['zerobounce', 'neverbounce', 'kickbox', 'reacher'] as const

export type Vocabulary = (typeof VOCABULARIES)[number]

/** The names of the services, for people. */
export const VOCABULARY_TITLES: Readonly<Record<Vocabulary, string>> = {
  zerobounce: 'ZeroBounce',
  neverbounce: 'NeverBounce',
  kickbox: 'Kickbox',
  reacher: 'Reacher',
}
