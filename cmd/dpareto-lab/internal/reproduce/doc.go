// Package reproduce recomputes tables and figures of published papers, with their mistakes
// corrected, beside the printed values.
package reproduce
