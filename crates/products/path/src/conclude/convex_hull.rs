//! Lower convex hull of points, and the lines that bound the points from below.

/// A point of a plane. Coordinates differ by less than 2^62, so that products of differences fit
/// 128 bits.
pub(super) type Point = (i64, i64);

/// Lower hull of points, from left to right.
#[derive(Debug)]
pub(super) struct Hull {
    corners: Vec<Point>,
    /// Slopes of the edges, ascending.
    slopes: Vec<f64>,
}

impl Hull {
    /// The hull of these points (Andrew, 1979).
    pub(super) fn lower(mut points: Vec<Point>) -> Self {
        points.sort_unstable();
        let mut corners: Vec<Point> = Vec::new();

        for point in points {
            // Of points with one abscissa only the lowest, which is the first, belongs to the hull.
            if corners.last().is_some_and(|last| last.0 == point.0) {
                continue;
            }

            while let [.., a, b] = corners.as_slice()
                && !is_below(*a, *b, point)
            {
                corners.pop();
            }

            corners.push(point);
        }

        let edges = corners.iter().zip(corners.iter().skip(1));
        let slopes = edges
            // Corners have different abscissas, so that the divisor is not 0.
            .map(|(a, b)| (b.1 - a.1) as f64 / (b.0 - a.0) as f64)
            .collect();
        Self { corners, slopes }
    }

    /// Slopes of the edges, ascending.
    pub(super) fn slopes(&self) -> impl Iterator<Item = f64> {
        self.slopes.iter().copied()
    }

    /// Where the highest line of this slope below all points crosses `x`; 0 of an empty hull.
    pub(super) fn line_at(&self, slope: f64, x: i64) -> f64 {
        // The line touches the corner between the flatter edges and the steeper ones.
        let at = self.slopes.partition_point(|edge| *edge < slope);
        self.corners.get(at).map_or(0.0, |corner| {
            corner.1 as f64 + slope * (x - corner.0) as f64
        })
    }

    /// The corner at the end of the hull that is nearest to `x`.
    pub(super) fn nearest(&self, x: i64) -> Option<Point> {
        let ends = self.corners.first().into_iter().chain(self.corners.last());
        ends.min_by_key(|corner| corner.0.abs_diff(x)).copied()
    }

    /// Height of the hull at `x`: no line below all points is higher there. `None` beside the hull.
    pub(super) fn height_at(&self, x: i64) -> Option<f64> {
        let right = self.corners.partition_point(|corner| corner.0 < x);
        let corner = self.corners.get(right)?;
        if corner.0 == x {
            return Some(corner.1 as f64);
        }

        let slope = self.slopes.get(right.checked_sub(1)?)?;
        Some(corner.1 as f64 + slope * (x - corner.0) as f64)
    }
}

/// `b` lies below the line from `a` to `c`.
fn is_below(a: Point, b: Point, c: Point) -> bool {
    let wide = i128::from;
    let left = (wide(b.1) - wide(a.1)) * (wide(c.0) - wide(a.0));
    let right = (wide(c.1) - wide(a.1)) * (wide(b.0) - wide(a.0));
    left < right
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hull_has_the_corners_below() {
        let hull = Hull::lower(vec![(0, 5), (2, 4), (1, 1), (3, 3), (4, 9), (2, 2), (4, 4)]);
        assert_eq!(hull.corners, [(0, 5), (1, 1), (4, 4)]);
        assert_eq!(hull.slopes, [-4.0, 1.0]);

        let heights = [-1, 0, 1, 3, 4, 5].map(|x| hull.height_at(x));
        assert_eq!(
            heights,
            [None, Some(5.0), Some(1.0), Some(3.0), Some(4.0), None]
        );
        assert!(Hull::lower(Vec::new()).corners.is_empty());
        assert_eq!(Hull::lower(vec![(7, 9), (7, 3)]).corners, [(7, 3)]);
    }

    proptest! {
        #[test]
        fn lines_below_the_hull_are_below_all_points(
            points in prop::collection::vec((-1000..1000_i64, -1000..1000_i64), 1..60),
            slope in -20.0..20.0_f64,
            x in -1000..1000_i64,
        ) {
            let lines = points.iter().map(|point| point.1 as f64 + slope * (x - point.0) as f64);
            let lowest = lines.fold(f64::INFINITY, f64::min);
            let hull = Hull::lower(points);
            prop_assert!((hull.line_at(slope, x) - lowest).abs() < 1e-6);
            prop_assert!(hull.height_at(x).is_none_or(|height| height >= lowest - 1e-6));
        }
    }
}
