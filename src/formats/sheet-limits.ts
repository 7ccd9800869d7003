/** Rows of a list that fit a worksheet below its header ("Excel specifications and limits"). */
export const SHEET_ROWS_MAX = 1_048_575
/** "Excel specifications and limits". */
export const COLUMNS_MAX = 16_384
